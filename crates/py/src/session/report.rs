//! Report of a run.

use std::sync::PoisonError;

use nono::diagnostic::{HostDenied, attempt_words, because_words};
use nono::rollback::RollbackReport;
use nono::session::SessionReport as Report;
use nono::{Denial as Refusal, DeniedAttempt, DiagnosticFormatter, Ended, LimitHit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use serde_json::{Value, json};

use super::approve::Failures;
use super::error;
use crate::history::changes::HistoryChanges;
use crate::paths::{self, PathText};
use crate::{plain, render};

/// A denial by the sandbox, and what would open it.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct Denial {
    /// "open", "metadata", "socket", "network", "host" or "other".
    #[pyo3(get)]
    kind: &'static str,
    /// The path it is about, or None.
    #[pyo3(get)]
    path: Option<PathText>,
    /// Description of the denied operation.
    #[pyo3(get)]
    operation: String,
    /// Reason of the denial.
    #[pyo3(get)]
    reason: String,
    /// The keyword of `run` that opens exactly this, or None where none does.
    #[pyo3(get)]
    hint: Option<String>,
    /// The first program that was denied, if the supervisor saw it.
    #[pyo3(get)]
    program: Option<PathText>,
    /// Number of times; 0 if it is known only from the command's output.
    #[pyo3(get)]
    count: u64,
    /// Whether it is an ordinary probe at the start of programs, which they do without.
    #[pyo3(get)]
    probe: bool,
    flags: Vec<String>,
}

impl Denial {
    fn attempt(denial: &Refusal) -> Denial {
        let (kind, path) = match &denial.attempt {
            DeniedAttempt::Open { path, .. } => ("open", Some(path)),
            DeniedAttempt::Metadata { path, .. } => ("metadata", Some(path)),
            DeniedAttempt::Socket { path } => ("socket", Some(path)),
            DeniedAttempt::Network { .. } => ("network", None),
            DeniedAttempt::Other { .. } => ("other", None),
        };
        Denial {
            path: path.cloned().map(PathText),
            program: denial.seen.as_ref().map(|seen| PathText(seen.program.clone())),
            count: denial.seen.as_ref().map_or(0, |seen| seen.count),
            probe: denial.probe,
            ..Denial::new(
                kind,
                attempt_words(&denial.attempt),
                because_words(&denial.because),
                denial.flags.clone(),
            )
        }
    }

    fn host(denied: &HostDenied) -> Denial {
        let (operation, reason) = (format!("reach {}:{}", denied.host, denied.port), denied.reason.clone());
        Denial {
            count: denied.count,
            ..Denial::new("host", operation, reason.unwrap_or_default(), denied.flags())
        }
    }

    /// Denial of the network as a whole; known only from the command's output.
    fn network() -> Denial {
        let (operation, reason) = ("use the network".to_owned(), "the network is closed".to_owned());
        Denial::new("network", operation, reason, vec!["--allow-net".to_owned()])
    }

    fn new(kind: &'static str, operation: String, reason: String, flags: Vec<String>) -> Denial {
        let hint = hint(&flags);
        Denial { kind, path: None, operation, reason, hint, program: None, count: 0, probe: false, flags }
    }
}

#[pymethods]
impl Denial {
    /// All values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let dict = plain::attributes(slf, "kind path operation reason hint program count probe")?;
        dict.set_item("flags", &slf.get().flags)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("; hint: {hint}")).unwrap_or_default();
        format!("Denial({}: {}{hint})", self.operation, self.reason)
    }
}

/// Flags of `nono run` as keywords: `--read /x` is `read=["/x"]`.
fn hint(flags: &[String]) -> Option<String> {
    let mut keywords: Vec<(String, Vec<&str>)> = Vec::new();
    for word in flags {
        match keywords.last_mut() {
            _ if word.starts_with("--") => keywords.push((error::keyword(word), Vec::new())),
            Some((_, values)) => values.push(word),
            // Not a flag: there is no keyword for it.
            None => return None,
        }
    }
    let shown = keywords.iter().map(|(keyword, values)| match &values[..] {
        [] => format!("{keyword}=True"),
        [port] if port.parse::<u16>().is_ok() => format!("{keyword}=[{port}]"),
        values => format!("{keyword}={values:?}"),
    });
    (!keywords.is_empty()).then(|| shown.collect::<Vec<_>>().join(", "))
}

/// Report of a run.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct SessionReport {
    report: Report,
    failures: Failures,
}

impl SessionReport {
    pub(super) fn new(report: Report, failures: Failures) -> SessionReport {
        SessionReport { report, failures }
    }

    fn tracked(&self) -> Option<&RollbackReport> {
        self.report.rollback.as_ref()
    }

    fn formatter(&self) -> DiagnosticFormatter<'_> {
        DiagnosticFormatter {
            exit_code: self.report.exit_code(),
            policy: &self.report.policy,
            findings: &self.report.findings,
            verbose: false,
        }
    }

    /// Warnings: problems that did not end the run.
    fn all_warnings(&self) -> Vec<String> {
        let report = &self.report;
        let mut warnings: Vec<String> =
            self.tracked().map(|tracked| tracked.warnings.clone()).unwrap_or_default();
        if let Some(Err(error)) = self.tracked().map(|tracked| &tracked.changes) {
            warnings.push(format!("cannot take the final snapshot: {error}"));
        }
        if let Some(network) = &report.network {
            let lost =
                network.lost.as_ref().map(|why| format!("the network was closed before the end: {why}"));
            warnings.extend(lost.into_iter().chain(network.missing()));
        }
        if let Some(checkpoints) = &report.checkpoints {
            let line = |(dir, why): &(std::path::PathBuf, String)| {
                format!("{} is not protected by a checkpoint: {why}", dir.display())
            };
            warnings
                .extend(checkpoints.unprotected.iter().map(line).chain(checkpoints.problems.iter().cloned()));
        }
        let problems = report.audit.iter().flat_map(|audit| &audit.problems);
        warnings.extend(problems.map(|problem| format!("the audit log is not complete: {problem}")));
        warnings
    }

    fn network_value(&self) -> Option<Value> {
        let network = self.report.network.as_ref()?;
        Some(json!({
            "allowed": network.allowed,
            "refused": network.refused,
            "hosts_denied": network.hosts,
            "lost": network.lost,
        }))
    }

    fn checkpoints_value(&self) -> Option<Value> {
        let report = self.report.checkpoints.as_ref()?;
        let pair = |(dir, text): &(std::path::PathBuf, String), name: &str| json!({"project": nono::json::path(dir), name: text});
        Some(json!({
            "taken": report.taken.iter().map(|one| pair(one, "id")).collect::<Vec<_>>(),
            "unprotected": report.unprotected.iter().map(|one| pair(one, "reason")).collect::<Vec<_>>(),
        }))
    }
}

#[pymethods]
impl SessionReport {
    /// The id by which `open_session`, `nono rollback` and `nono audit` know it.
    #[getter]
    fn session_id(&self) -> &str {
        &self.report.session_id
    }

    /// The command's own; 124 when `max_time` was over, 137 when it used more than `max_memory`, 128+n when signal n
    /// ended it.
    #[getter]
    fn exit_code(&self) -> i32 {
        self.report.exit_code()
    }

    /// The signal that ended it, or None.
    #[getter]
    fn signal(&self) -> Option<i32> {
        match self.report.ended {
            Ended::Signal(signal) => Some(signal),
            Ended::Code(_) => None,
        }
    }

    /// Whether it ended by itself, with code 0.
    #[getter]
    fn ok(&self) -> bool {
        self.exit_code() == 0
    }

    /// The limit that ended it: "time", "memory", "file_size" or None.
    #[getter]
    fn limit(&self) -> Option<&'static str> {
        self.report.limit.map(|limit| match limit {
            LimitHit::Time(_) => "time",
            LimitHit::Memory { .. } => "memory",
            LimitHit::FileSize(_) => "file_size",
        })
    }

    /// Whether `stop_session` or `nono stop` ended it.
    #[getter]
    fn stopped(&self) -> bool {
        self.report.stopped
    }

    /// Whether `cancel`, Ctrl-C or an exception of `progress` ended it.
    #[getter]
    fn cancelled(&self) -> bool {
        self.report.cancelled
    }

    /// Its standard output, with `capture_output=True`; else None.
    #[getter]
    fn stdout<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.report.captured.as_ref().map(|captured| PyBytes::new(py, &captured.stdout))
    }

    /// Its standard error, with `capture_output=True`; else None.
    #[getter]
    fn stderr<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.report.captured.as_ref().map(|captured| PyBytes::new(py, &captured.stderr))
    }

    /// Whether its output exceeded `max_output`.
    #[getter]
    fn truncated(&self) -> bool {
        self.report.captured.as_ref().is_some_and(|captured| captured.truncated)
    }

    /// The changes of the run, if it was tracked and the final snapshot could be taken; else None.
    #[getter]
    fn changes(&self) -> Option<HistoryChanges> {
        self.tracked()?.changes.as_ref().ok()?.list.as_ref().map(HistoryChanges::from)
    }

    /// The coverage of the baseline, if the run was tracked.
    #[getter]
    fn coverage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.tracked().map(|tracked| &tracked.coverage))
    }

    /// Examples of paths it created that are in no snapshot, so that a restore leaves them, with the reasons.
    #[getter]
    fn made_uncovered<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(
            py,
            &self.tracked().map(|tracked| &tracked.made_uncovered).into_iter().flatten().collect::<Vec<_>>(),
        )
    }

    /// Paths not in the baseline that were gone or changed at the end: no restore brings them back.
    #[getter]
    fn lost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(
            py,
            &self.tracked().map(|tracked| &tracked.lost).into_iter().flatten().collect::<Vec<_>>(),
        )
    }

    /// Number of snapshots taken.
    #[getter]
    fn snapshot_count(&self) -> u32 {
        self.tracked().map_or(0, |tracked| tracked.snapshots)
    }

    /// Denials of the run.
    #[getter]
    fn denials(&self) -> Vec<Denial> {
        let findings = &self.report.findings;
        let told =
            findings.denials.iter().map(Denial::attempt).chain(findings.hosts.iter().map(Denial::host));
        told.chain(findings.network.then(Denial::network)).collect()
    }

    /// Grants that were added while it ran.
    #[getter]
    fn expansions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.report.mediation.expansions)
    }

    /// Number of approval requests.
    #[getter]
    fn asked(&self) -> u64 {
        self.report.mediation.asked
    }

    /// Exceptions and invalid answers of `approve`; these requests were denied.
    #[getter]
    fn approval_errors<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.iter().map(|error| error.value(py).clone().into_any()).collect()
    }

    /// The network events, if the network was filtered.
    #[getter]
    fn network<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.network_value())
    }

    /// The folder of its audit log, or None.
    #[getter]
    fn audit_dir<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.report.audit.as_ref().map(|audit| paths::to_python(py, &audit.dir))
    }

    /// The record of its audit log, as in its `session.json`.
    #[getter]
    fn audit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.report.audit.as_ref().and_then(|audit| audit.record.as_ref()))
    }

    /// The checkpoints that were taken, and what is not protected.
    #[getter]
    fn checkpoints<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.checkpoints_value())
    }

    /// The policy it ran under.
    #[getter]
    fn policy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.report.policy)
    }

    /// Problems that did not end the run.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.all_warnings()
    }

    /// A readable explanation of a failure, as `nono run` prints it.
    fn explain(&self) -> String {
        self.formatter().lines().join("\n")
    }

    /// All values as a plain dict; fields that `--diagnostics-json` has too have the same names.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        let dict = match this.formatter().json() {
            Value::Object(mut fields) => {
                fields
                    .retain(|name, _| !matches!(name.as_str(), "flags" | "may_be_due_to_sandbox" | "policy"));
                plain::dict(py, &fields)?
            }
            _ => PyDict::new(py),
        };
        let names = "session_id signal limit stopped cancelled stdout stderr truncated changes coverage \
                     made_uncovered lost snapshot_count denials network audit_dir audit checkpoints policy warnings";
        dict.update(plain::attributes(slf, names)?.as_mapping())?;
        let errors: Vec<String> = this.approval_errors(py).iter().map(ToString::to_string).collect();
        dict.set_item("approval_errors", errors)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let limit = self.limit().map(|limit| format!(", limit='{limit}'")).unwrap_or_default();
        let changes = self.changes().map(|changes| format!(", changes={}", changes.__len__()));
        format!(
            "SessionReport(session_id='{}', exit_code={}{limit}{})",
            self.report.session_id,
            self.exit_code(),
            changes.unwrap_or_default()
        )
    }

    fn _repr_html_(&self) -> String {
        let mut rows = vec![
            vec!["session".to_owned(), self.report.session_id.clone()],
            vec!["exit code".to_owned(), self.exit_code().to_string()],
        ];
        rows.extend(self.limit().map(|limit| vec!["limit".to_owned(), limit.to_owned()]));
        let denied = |denial: Denial| {
            let hint = denial.hint.map(|hint| format!(" — {hint}")).unwrap_or_default();
            vec!["denied".to_owned(), format!("{}: {}{hint}", denial.operation, denial.reason)]
        };
        rows.extend(self.denials().into_iter().filter(|denial| !denial.probe).map(denied));
        rows.extend(self.all_warnings().into_iter().map(|warning| vec!["warning".to_owned(), warning]));
        let changes = self.changes().map(|changes| changes.html()).unwrap_or_default();
        render::table(&["", "what"], rows) + &changes
    }
}
