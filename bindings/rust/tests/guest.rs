//! On the machine that RINGSIDE_TARGET names; without it there is nothing to test.

use ringside::{Error, Machine, Value};

fn target() -> Option<String> {
    std::env::var("RINGSIDE_TARGET").ok()
}

#[test]
fn records_and_aggregations_are_exact() -> Result<(), Error> {
    let Some(target) = target() else { return Ok(()) };
    let mut vm = Machine::open(&target)?;
    let mut trace = vm.trace(
        "BEGIN { printf(\"%s %d\", \"seven\", 7); @[\"key\", 3] = count(); @[\"key\", 3] = count(); }
         tick-10ms { exit(5); }",
        &[],
    )?;

    let mut values = Vec::new();
    while let Some(record) = trace.next_record(None)? {
        for item in record.get("output").map_or(&[][..], Value::items) {
            values.extend(item.get("value").cloned());
        }
    }

    assert!(trace.is_over());
    assert_eq!(trace.status(), 5);
    assert_eq!(values[..2], [Value::Text("seven".to_string()), Value::Integer(7)]);
    let all = trace.aggregations()?;
    let data = all.items()[0].get("aggregation-data").unwrap().items();
    assert_eq!(data[0].get("keys").unwrap().items()[1], Value::Integer(3));
    assert_eq!(data[0].get("count").and_then(Value::as_i64), Some(2));
    Ok(())
}

#[test]
fn errors_have_a_place() {
    let Some(target) = target() else { return };
    let mut vm = Machine::open(&target).unwrap();

    let error = vm.trace("BEGIN { trace(nothing); }", &[]).err().unwrap();

    assert_eq!((error.line, error.column), (1, 15));
    assert!(vm.trace("BEGIN", &[("bufsize", "much")]).is_err());
    assert!(!vm.list("ps").unwrap().get("processes").unwrap().items().is_empty());
}
