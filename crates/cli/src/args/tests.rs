use clap::CommandFactory;

use super::*;

#[test]
fn every_text_below_a_help_is_found() {
    let text =
        |command: &clap::Command| command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut waiting = vec![Cli::command()];
    let mut found = 0;
    while let Some(command) = waiting.pop() {
        let is_shown = !command.is_hide_set() && command.get_name() != "help";
        assert!(!is_shown || text(&command).starts_with("Example"), "{}", command.get_name());
        found += usize::from(!text(&command).is_empty());
        waiting.extend(command.get_subcommands().cloned());
    }
    assert_eq!(found, include_str!("after_help.txt").matches("\n== ").count());
}
