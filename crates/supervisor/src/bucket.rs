//! Token bucket: a burst, then a rate per second.

use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Bucket {
    a_second: f64,
    at_once: f64,
    tokens: f64,
    last: Instant,
}

impl Bucket {
    pub(crate) fn new(a_second: u32, at_once: u32, now: Instant) -> Bucket {
        let (a_second, at_once) = (f64::from(a_second), f64::from(at_once));
        Bucket { a_second, at_once, tokens: at_once, last: now }
    }

    /// Takes one token, if there is one at `now`.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.last).as_secs_f64();
        self.last = self.last.max(now);
        self.tokens = (self.tokens + passed * self.a_second).min(self.at_once);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_and_then_a_steady_stream() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10, 5, start);
        let taken = |bucket: &mut Bucket, now| (0..100).filter(|_| bucket.take(now)).count();
        assert_eq!(taken(&mut bucket, start), 5);
        assert_eq!(taken(&mut bucket, start + Duration::from_millis(100)), 1);
        assert_eq!(taken(&mut bucket, start + Duration::from_millis(400)), 3);
        assert_eq!(taken(&mut bucket, start + Duration::from_secs(3600)), 5, "no more than at once");
        assert_eq!(taken(&mut bucket, start), 0, "a clock that goes back gives nothing");
    }
}
