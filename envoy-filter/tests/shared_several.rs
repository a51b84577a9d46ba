//! Several limits of one request in a shared store: in one call where they share a slot, and in
//! calls that undo one another where they do not.

mod support;

use support::{REDIS, Stage, now, statuses};
use weir_core::script::{GENERAL, REFUND};

/// A limit by key and one for everyone, which are in different slots.
fn two_slots(fields: &str) -> Stage {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS}{fields},"limits":[
            {{"name":"per-key","key":["header:x-api-key"],"rate":"1/second","burst":2}},
            {{"name":"everyone","rate":"10/second"}}]}}"#,
    ));
    stage.tick();
    stage
}

/// A reply of the general script for one limit, with the time at which it charged. A key whose
/// second token is half a second away owes one and a half.
fn general(outcome: u8, wait: u32) -> Vec<u8> {
    let (left, reset) =
        (u8::from(outcome == 1), 1_000_000.max(wait + 1_000_000 * u32::from(wait == HALF)));
    format!("*5\r\n:{outcome}\r\n:{left}\r\n:{wait}\r\n:{reset}\r\n:1700000000000000\r\n")
        .into_bytes()
}

/// Half a second.
const HALF: u32 = 500_000;

#[test]
fn limits_with_the_same_key_go_in_one_call() {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS},"limits":[
            {{"name":"second","key":["header:x-api-key"],"rate":"1/second","burst":2}},
            {{"name":"minute","key":["header:x-api-key"],"algorithm":"fixed-window","rate":"9/minute"}}]}}"#,
    ));
    stage.tick();
    stage.ask("alice");
    let commands = stage.commands();
    let [words] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!(words[..3], ["EVALSHA", GENERAL.sha1(), "2"]);
    assert_eq!(words[3][..17], words[4][..17], "one hash tag");
    let reply = b"*9\r\n:1\r\n:1\r\n:0\r\n:1000000\r\n:0\r\n:0\r\n:5000000\r\n:5000000\r\n:1700000000000000\r\n";
    assert_eq!(statuses(&stage.reply(reply)), [(1, 429)]);
    assert_eq!(stage.commands().len(), 0, "the script has charged neither");
}

/// Two limits of one slot, which is on its way from one node of a cluster to another.
fn half_moved(fields: &str) -> Stage {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS}{fields},"limits":[
            {{"name":"a","key":["header:x-api-key"],"rate":"1/second","burst":2}},
            {{"name":"b","key":["header:x-api-key"],"rate":"1/second","burst":2}}]}}"#,
    ));
    stage.tick();
    stage.ask("alice");
    stage.commands();
    stage.host.pass_millis(6);
    let reply = b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n";
    assert!(stage.reply(reply).is_empty(), "the request still waits");
    stage
}

#[test]
fn limits_of_a_slot_that_is_half_moved_are_asked_one_by_one() {
    let mut stage = half_moved("");
    let commands = stage.commands();
    let numbers: Vec<_> = commands.iter().map(|words| (words[1].as_str(), &*words[2])).collect();
    assert_eq!(numbers, [(GENERAL.sha1(), "1"); 2]);
    assert_ne!(commands[0][3], commands[1][3]);
    assert!(stage.reply(&general(1, 0)).is_empty());
    assert_eq!(statuses(&stage.reply(&general(1, 0))), [(1, 200)]);
    assert_eq!(stage.commands().len(), 0);
    assert_eq!((stage.count("allowed"), stage.count("store_calls")), (1, 3));
    assert_eq!(stage.log().iter().filter(|line| line.contains("TRYAGAIN")).count(), 0);
}

#[test]
fn what_one_of_them_refuses_is_given_back_to_the_other() {
    let mut stage = half_moved("");
    let asked = stage.commands();
    stage.reply(&general(0, HALF));
    assert_eq!(statuses(&stage.reply(&general(1, 0))), [(1, 429)]);
    let commands = stage.commands();
    let [words] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!((words[1].as_str(), &words[3]), (REFUND.sha1(), &asked[1][3]));
}

#[test]
fn a_limit_that_stays_half_moved_goes_by_its_policy() {
    for (policy, status) in [("allow", 200), ("deny", 503), ("local", 200)] {
        let mut stage = half_moved(&format!(r#","on_store_failure":"{policy}""#));
        stage.reply(&general(1, 0));
        assert_eq!(statuses(&stage.reply(b"-TRYAGAIN\r\n")), [(1, status)], "{policy}");
        assert_eq!(stage.count("store_error"), 1);
    }
}

#[test]
fn being_asked_one_by_one_takes_no_longer_than_the_deadline() {
    let mut stage = half_moved("");
    stage.host.pass_millis(4);
    assert_eq!(statuses(&stage.tick()), [(1, 200)]);
    assert_eq!(stage.count("unchecked"), 2);
}

#[test]
fn a_stream_that_is_lost_when_they_are_asked_one_by_one_leaves_nobody_waiting() {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS},"limits":[
            {{"name":"a","key":["header:x-api-key"],"rate":"1/second","burst":2}},
            {{"name":"b","key":["header:x-api-key"],"rate":"1/second","burst":2}}]}}"#,
    ));
    stage.tick();
    stage.ask("alice");
    let stream = *stage.host.streams().last().expect("a stream");
    stage.host.end_stream(stream);
    let answers = stage.shared.on_message(&stage.plugin, &stage.host, (stream, b"-TRYAGAIN\r\n"));
    assert_eq!(statuses(&answers), [(1, 200)]);
    assert_eq!(stage.count("unchecked"), 2);
}

#[test]
fn shards_of_limits_with_as_many_go_in_one_call_on_the_stream_of_their_slots() {
    let mut stage = Stage::of(
        r#"{"store":{"type":"redis","streams":3},"limits":[
            {"name":"second","rate":"300/second","shards":3},
            {"name":"minute","rate":"9000/minute","shards":3}]}"#,
    );
    stage.tick();
    let streams = stage.host.streams();
    for (shard, stream) in (0..3).zip(streams) {
        stage.host.set_draw(shard * (u32::MAX / 3) + 1);
        stage.ask("anyone");
        let messages = stage.host.take_messages();
        let [(id, bytes)] = messages.as_slice() else { panic!("{messages:?}") };
        assert_eq!(*id, stream);
        assert_eq!(String::from_utf8_lossy(bytes).matches("weir{").count(), 2);
    }
}

#[test]
fn a_request_passes_when_both_slots_allow() {
    let mut stage = two_slots("");
    assert_eq!(now(&stage.ask("alice")), 0);
    assert_eq!(stage.commands().len(), 2, "both are asked at once");
    assert!(stage.reply(&general(1, 0)).is_empty());
    assert_eq!(statuses(&stage.reply(&general(1, 0))), [(1, 200)]);
    assert_eq!(stage.commands().len(), 0);
    assert_eq!(stage.count("allowed"), 1);
}

#[test]
fn what_the_other_slot_refuses_is_given_back() {
    let mut stage = two_slots("");
    stage.ask("alice");
    let asked = stage.commands();
    stage.reply(&general(1, 0));
    assert_eq!(statuses(&stage.reply(&general(0, 100_000))), [(1, 429)]);
    let commands = stage.commands();
    let [words] = commands.as_slice() else { panic!("{commands:?}") };
    assert_eq!(words[..3], ["EVALSHA", REFUND.sha1(), "1"]);
    assert_eq!(words[3], asked[0][3], "to the limit that was charged");
    assert_eq!(words[4], "1700000000000000", "less what has refilled since then");
    assert!(stage.reply(b"*1\r\n:1\r\n").is_empty());
    assert_eq!(stage.count("refund_lost"), 0);
}

#[test]
fn a_charge_that_is_given_back_is_not_remembered() {
    let mut stage = two_slots("");
    stage.ask("alice");
    // The last token, which the other slot's refusal gives back.
    stage.reply(b"*5\r\n:1\r\n:0\r\n:0\r\n:2000000\r\n:1700000000000000\r\n");
    stage.reply(&general(0, 100_000));
    stage.host.pass_millis(101);
    assert_eq!(now(&stage.ask("alice")), 0, "the store is asked again");
}

#[test]
fn nothing_is_given_back_where_both_refuse() {
    let mut stage = two_slots("");
    stage.ask("alice");
    stage.commands();
    stage.reply(&general(0, HALF));
    assert_eq!(statuses(&stage.reply(&general(0, 100_000))), [(1, 429)]);
    assert_eq!(stage.commands().len(), 0);
}

#[test]
fn a_slot_that_is_not_checked_goes_by_its_policy_and_the_other_counts() {
    for (policy, status, refunds) in [("allow", 200, 0), ("deny", 503, 1), ("local", 200, 0)] {
        let mut stage = two_slots(&format!(r#","on_store_failure":"{policy}""#));
        stage.ask("alice");
        stage.commands();
        stage.reply(&general(1, 0));
        assert_eq!(statuses(&stage.reply(b"-LOADING\r\n")), [(1, status)], "{policy}");
        assert_eq!(stage.commands().len(), refunds, "{policy}");
    }
}

#[test]
fn a_refusal_outweighs_a_slot_that_is_not_checked() {
    let mut stage = two_slots(r#","on_store_failure":"deny""#);
    stage.ask("alice");
    stage.reply(&general(0, HALF));
    stage.host.pass_millis(10);
    assert_eq!(statuses(&stage.tick()), [(1, 429)]);
    assert_eq!(stage.count("unavailable"), 0);
}

#[test]
fn what_is_known_to_refuse_charges_nobody_else() {
    let mut stage = two_slots("");
    stage.ask("alice");
    stage.reply(&general(0, HALF));
    stage.reply(&general(1, 0));
    stage.commands();
    assert_eq!(now(&stage.ask("alice")), 429);
    assert_eq!(stage.commands().len(), 0, "the limit for everyone is not even asked");
}

#[test]
fn permits_are_given_back_by_the_name_of_the_request() {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS},"limits":[{{"name":"in-flight","algorithm":"concurrency","limit":2,"key":["header:x-api-key"]}}]}}"#,
    ));
    stage.tick();
    stage.host.set_draw(7);
    stage.ask("alice");
    let asked = stage.commands();
    assert_eq!(asked[0].last().map(String::as_str), Some("700000007"));
    let answers = stage.reply(b"*4\r\n:1\r\n:1\r\n:0\r\n:30000000\r\n");
    let permits = &answers[0].1.permits;
    assert_eq!(permits.len(), 1);
    stage.shared.release(&stage.plugin, &stage.host, &stage.host, permits);
    let released = stage.commands();
    assert_eq!(released[0][1], REFUND.sha1());
    assert_eq!(released[0].last().map(String::as_str), Some("700000007"));
}

#[test]
fn a_permit_that_may_have_been_granted_too_late_is_given_back() {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS},"on_store_failure":"deny","limits":[{{"name":"in-flight","algorithm":"concurrency","limit":2}}]}}"#,
    ));
    stage.tick();
    stage.ask("alice");
    stage.commands();
    // Another is answered meanwhile, so the store is not out.
    stage.host.pass_millis(5);
    stage.ask("bob");
    stage.host.pass_millis(1);
    stage.reply(b"*4\r\n:1\r\n:1\r\n:0\r\n:30000000\r\n");
    stage.commands();
    stage.host.pass_millis(10);
    assert_eq!(statuses(&stage.tick()), [(2, 503)]);
    assert_eq!(stage.commands().len(), 1);
}

#[test]
fn a_permit_that_may_have_been_granted_by_a_lost_store_is_given_back() {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS},"limits":[{{"name":"in-flight","algorithm":"concurrency","limit":2}}]}}"#,
    ));
    stage.tick();
    stage.ask("alice");
    let answers = stage.close();
    assert_eq!(statuses(&answers), [(1, 200)]);
    assert_eq!(answers[0].1.permits.len(), 1);
}

#[test]
fn a_permit_is_given_back_in_an_outage_too() {
    let mut stage = Stage::of(&format!(
        r#"{{{REDIS},"limits":[{{"name":"in-flight","algorithm":"concurrency","limit":2}}]}}"#,
    ));
    stage.tick();
    stage.ask("alice");
    let granted = stage.reply(b"*4\r\n:1\r\n:1\r\n:0\r\n:30000000\r\n");
    stage.host.pass_millis(5);
    stage.ask("bob");
    stage.host.pass_millis(10);
    stage.tick();
    stage.commands();
    assert_eq!(now(&stage.ask("carol")), 200, "the store is out");
    stage.shared.release(&stage.plugin, &stage.host, &stage.host, &granted[0].1.permits);
    assert_eq!(stage.commands().len(), 1);
    assert_eq!(stage.count("refund_lost"), 0);
}
