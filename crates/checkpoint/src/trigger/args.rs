//! Options and operands of a command.

use super::words::{Arg, Known};

/// The arguments of a command, told apart.
#[derive(Debug, Default)]
pub(super) struct Args<'a> {
    /// Each with its value, if it is one that has a value in the next or in the same word.
    pub(super) options: Vec<(&'a str, Option<Arg>)>,
    pub(super) operands: Vec<&'a Arg>,
}

/// Options that take a value: `-n`, `--name`.
pub(super) type Values = &'static [&'static str];

impl<'a> Args<'a> {
    /// Told apart; operands may stand between options.
    pub(super) fn new(args: &'a [Arg], values: Values) -> Args<'a> {
        let mut told = Args::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if arg.is("--") {
                told.operands.extend(rest);
                break;
            }
            if !is_option(arg) {
                told.operands.push(arg);
            } else if takes_next(&arg.text, values) {
                told.options.push((&arg.text, rest.next().cloned()));
            } else {
                told.options.push((&arg.text, attached(arg, values)));
            }
        }
        told
    }

    /// Whether it has one of these. Short ones also in a cluster (`-ni`), long ones also shortened.
    pub(super) fn has(&self, wanted: &[&str], values: Values) -> bool {
        self.options.iter().any(|(option, _)| wanted.iter().any(|wanted| matches(option, wanted, values)))
    }

    /// The values of these.
    pub(super) fn values(&self, wanted: &[&str], values: Values) -> Vec<&Arg> {
        let given = |option: &str| wanted.iter().any(|wanted| matches(option, wanted, values));
        self.options
            .iter()
            .filter(|(option, _)| given(option))
            .filter_map(|(_, value)| value.as_ref())
            .collect()
    }
}

pub(super) fn is_option(arg: &Arg) -> bool {
    arg.text.len() > 1 && arg.text.starts_with('-')
}

/// Whether the value of an option is the next word.
pub(super) fn takes_next(option: &str, values: Values) -> bool {
    if option.starts_with("--") {
        return !option.contains('=') && values.iter().any(|value| matches(option, value, &[]));
    }
    if values.contains(&option) {
        return true;
    }
    // The first letter with a value takes the rest of the cluster, or the next word if nothing is left.
    let letters = || option.char_indices().skip(1);
    let first = letters().find(|(_, letter)| values.contains(&format!("-{letter}").as_str()));
    first.is_some_and(|(at, letter)| at + letter.len_utf8() == option.len())
}

/// The value in the same word: `--name=value`, `-nvalue`.
fn attached(arg: &Arg, values: Values) -> Option<Arg> {
    let at = if arg.text.starts_with("--") {
        arg.text.find('=')? + 1
    } else {
        let takes = |letter: char| values.contains(&format!("-{letter}").as_str());
        let (at, letter) = arg.text.char_indices().skip(1).find(|(_, letter)| takes(*letter))?;
        at + letter.len_utf8()
    };
    let text = arg.text.get(at..)?.to_owned();
    (!text.is_empty() || arg.known != Known::Whole).then(|| Arg { text, ..arg.clone() })
}

fn matches(option: &str, wanted: &str, values: Values) -> bool {
    if wanted.starts_with("--") {
        let name = option.split('=').next().unwrap_or(option);
        return name == wanted || (name.len() >= 5 && name.starts_with("--") && wanted.starts_with(name));
    }
    // Single-dash words of programs that have no clusters: `-delete`.
    if option == wanted || wanted.chars().count() != 2 || option.starts_with("--") {
        return option == wanted;
    }
    let Some(letter) = wanted.chars().nth(1) else { return false };
    for found in option.chars().skip(1) {
        if found == letter {
            return true;
        }
        if values.contains(&format!("-{found}").as_str()) {
            return false;
        }
    }
    false
}
