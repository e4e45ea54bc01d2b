//! Files that a guest's processes open, for ten seconds, and how many each has opened:
//! cargo run --example opens TARGET

use ringside::{Error, Machine, Value};
use std::time::{Duration, Instant};

fn main() -> Result<(), Error> {
    let target = std::env::args().nth(1).unwrap_or_else(|| "web1".to_string());
    let mut vm = Machine::open(&target)?;
    let mut trace = vm.trace(
        "syscall::openat:entry { @[execname] = count(); trace(execname); trace(copyinstr(arg1)); }",
        &[("bufsize", "16m")],
    )?;
    let until = Instant::now() + Duration::from_secs(10);
    while !trace.is_over() {
        if Instant::now() >= until {
            trace.stop();
        }
        if let Some(record) = trace.next_record(Some(Duration::from_millis(100)))? {
            let items = record.get("output").map_or(&[][..], Value::items);
            let words: Vec<_> = items.iter().filter_map(|item| item.get("value")?.as_str()).collect();
            println!("{}", words.join(" "));
        }
    }
    println!("{:?}", trace.aggregations()?);
    Ok(())
}
