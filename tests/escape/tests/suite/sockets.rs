//! Unix sockets: servers outside are closed by path and by name; no process outside hands anything in.

use crate::harness::fixture::{helper, unix_dgram, unix_stream};
use crate::harness::{Attack, attack, attacks};

const ABSTRACT: &str = "@nono-escape-{terces}";

fn stream(steps: &'static str, at: &'static str) -> Attack {
    attack(steps).changes().against(unix_stream(at)).watch(&[])
}
fn dgram(steps: &'static str, at: &'static str) -> Attack {
    attack(steps).changes().against(unix_dgram(at)).watch(&[])
}
/// Server whose path cannot be learned from the name that it was bound to.
fn renamed(server: &'static str) -> Attack {
    attack("dial stream {door}").changes().against(helper(server)).watch(&[])
}

attacks! {
    stream_outside: stream("dial stream {door}", "{out}/door").also_in_tmp();
    stream_in_the_home: stream("dial stream {door}", "{home}/door");
    stream_in_tmp: stream("dial stream {door}", "/tmp/nono-escape-door-{terces}");
    stream_in_run: stream("dial stream {door}", "/run/nono-escape-door-{terces}").prepared_by_root();
    stream_in_the_read_grant: stream("dial stream {door}", "{ro}/door").also_in_tmp();
    stream_of_another_process_in_the_write_grant: stream("dial stream {door}", "{prj}/door").also_in_tmp();
    stream_with_the_network_open: stream("dial stream {door}", "{out}/door").flags("--allow-net");

    by_symlink:
        stream("symlink {out}/door {prj}/link , dial stream {prj}/link", "{out}/door"),
        stream("symlink {out} {prj}/link , dial stream {prj}/link/door", "{out}/door");
    by_detour:
        stream("dial stream {prj}/../outside/door", "{out}/door"),
        stream("dial stream /proc/self/root{door}", "{out}/door"),
        stream("dial-fd {out} door", "{out}/door"),
        stream("dial-near {out} door", "{out}/door"),
        stream("dial-near {ro} ./door", "{ro}/door");
    by_hard_link:
        stream("link {out}/door {prj}/link , dial stream {prj}/link", "{out}/door"),
        stream("link-fd {out}/door {prj}/link , dial stream {prj}/link", "{out}/door"),
        stream("link {ro}/door {prj}/link , dial stream {prj}/link", "{ro}/door");
    by_rename: stream("rename {out}/door {prj}/taken , dial stream {prj}/taken", "{out}/door");
    by_race: stream("dial-race {prj}/own.sock {door}", "{out}/door");

    bound_by_a_relative_name:
        renamed("listener near {ro} door"),
        renamed("listener near {ro}/dir door"),
        renamed("listener near {prj} door"),
        renamed("listener near {prj}/sub door");
    bound_under_another_name:
        renamed("listener linked {ro} door"),
        renamed("listener linked {prj} door"),
        renamed("listener renamed {ro} door"),
        renamed("listener renamed {prj} door");

    dgram_sockets:
        dgram("throw dgram to {door}", "{out}/door"),
        dgram("throw raw to {door}", "{out}/door"),
        dgram("throw flags to {door}", "{out}/door"),
        dgram("throw wide to {door}", "{out}/door"),
        dgram("throw dgram to {door}", "{ro}/door"),
        dgram("dial dgram {door}", "{out}/door");
    dgram_pairs:
        dgram("throw pair to {door}", "{out}/door"),
        dgram("throw pair msg {door}", "{out}/door"),
        dgram("throw pair mmsg {door}", "{out}/door"),
        dgram("throw raw-pair to {door}", "{out}/door"),
        dgram("throw wide-pair to {door}", "{out}/door"),
        dgram("throw pair to {door}", "{ro}/door").also_in_tmp(),
        dgram("throw pair msg {door}", "{out}/door").bare(),
        dgram("throw pair mmsg {door}", "{ro}/door").bare(),
        dgram("pair-dial {door}", "{out}/door"),
        dgram("pair-dial {door}", "{ro}/door").bare();
    /// An end of a pair that was made outside would be bound to names outside.
    names_outside_asked_by_a_pair:
        attack("pair-name {door}").against(unix_dgram(ABSTRACT)).watch(&[]);

    abstract_stream:
        stream("dial stream {door}", ABSTRACT),
        stream("dial stream {door}", ABSTRACT).flags("--allow-net");
    abstract_dgram:
        dgram("throw dgram to {door}", ABSTRACT),
        dgram("throw pair to {door}", ABSTRACT).flags("--allow-net"),
        dgram("throw raw to {door}", ABSTRACT).flags("--allow-net");

    descriptors_from_an_accomplice:
        attack("receive-fd stream {door}").leaks().against(helper("giver stream {prj}/giver {out}/secret")),
        attack("receive-fd stream {door}").leaks().against(helper("giver stream {out}/giver {out}/secret")),
        attack("receive-fd seqpacket {door}").leaks()
            .against(helper("giver seqpacket {ro}/giver {out}/secret"));
}
