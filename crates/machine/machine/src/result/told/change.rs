//! What to try in place of a value of the spec.

use serde_json::Value;

/// What is tried. Each leaves out values that leave nothing to try.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// Twice as much, up to a most.
    Double(f64),
    /// Half of it, down to a least.
    Halve(f64),
    /// This value. A policy of the name, whatever its parameters, has it already; so have the others.
    Set(&'static str, &'static [&'static str]),
}

impl Change {
    /// As much more as can be.
    pub(super) const MORE: Change = Change::Double(f64::INFINITY);
    /// As much less as can be.
    pub(super) const LESS: Change = Change::Halve(0.0);

    /// The value to try in place of the present one, as `--set` takes it; none if there is nothing to try.
    pub(super) fn of(self, now: &Value) -> Option<String> {
        let text = match self {
            Change::Double(most) => scaled(now, 2.0, |number| number <= most)?,
            Change::Halve(least) => scaled(now, 0.5, |number| number >= least)?,
            Change::Set(value, as_good) => {
                let name = name(now)?;
                let is_done = name == value || as_good.contains(&name.as_str());
                (!is_done).then(|| value.to_owned())?
            }
        };
        (text != said(now)).then_some(text)
    }
}

/// What a value says: of a policy with parameters its name.
fn name(now: &Value) -> Option<String> {
    match now {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(now.to_string()),
        Value::Object(table) if table.len() == 1 => table.keys().next().cloned(),
        _ => None,
    }
}

/// A value as a user writes it.
pub(super) fn said(now: &Value) -> String {
    now.as_str().map_or_else(|| now.to_string(), str::to_owned)
}

/// Every number of a value times a factor; none without a number, with a zero, or where a product is not allowed.
fn scaled(now: &Value, factor: f64, allowed: impl Fn(f64) -> bool + Copy) -> Option<String> {
    match now {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64()?;
            let to = number * factor;
            (number > 0.0 && allowed(to)).then(|| to.to_string())
        }
        Value::Number(number) => {
            // Whole numbers stay whole: half of one is none.
            let number = number.as_u64().filter(|number| *number > 0)?;
            let to = number as f64 * factor;
            (to >= 1.0 && allowed(to)).then(|| to.floor().to_string())
        }
        Value::String(text) => {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, unit) = text.split_at(end);
            let number: f64 = number.parse().ok()?;
            let to = number * factor;
            (number > 0.0 && allowed(to)).then(|| format!("{to}{unit}"))
        }
        Value::Array(all) if !all.is_empty() => {
            let all = all.iter().map(|one| {
                let to = scaled(one, factor, allowed)?;
                Some(if one.is_string() { format!("\"{to}\"") } else { to })
            });
            Some(format!("[{}]", all.collect::<Option<Vec<_>>>()?.join(", ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Change;
    use serde_json::json;

    /// What there is to try follows from the present value: nothing of zero, nothing of what is set, whatever its parameters.
    #[test]
    fn what_is_tried_is_never_what_is_there() {
        let halved = |now| Change::LESS.of(&now);
        assert_eq!(halved(json!("58us")).as_deref(), Some("29us"));
        assert_eq!(halved(json!(["58us", "78us"])).as_deref(), Some("[\"29us\", \"39us\"]"));
        assert_eq!(halved(json!("6.8us")).as_deref(), Some("3.4us"));
        assert_eq!(halved(json!(8)).as_deref(), Some("4"));
        for nothing in
            [json!("0ps"), json!(0), json!(1), json!(0.0), json!("none"), json!([]), json!(["0us"])]
        {
            assert_eq!(halved(nothing.clone()), None, "{nothing}");
        }
        assert_eq!(Change::MORE.of(&json!("400MT/s")).as_deref(), Some("800MT/s"));
        assert_eq!(Change::MORE.of(&json!(0.25)).as_deref(), Some("0.5"));
        assert_eq!(Change::Double(16.0).of(&json!(16)), None);
        assert_eq!(Change::Double(16.0).of(&json!(8)).as_deref(), Some("16"));
        let first = Change::Set("read_first", &["priority"]);
        assert_eq!(first.of(&json!("oldest")).as_deref(), Some("read_first"));
        for done in [json!("read_first"), json!({"read_first": {"max_wait": "5ms"}}), json!({"priority": {}})]
        {
            assert_eq!(first.of(&done), None, "{done}");
        }
        assert_eq!(Change::Set("true", &[]).of(&json!(true)), None);
        assert_eq!(Change::Set("true", &[]).of(&json!(false)).as_deref(), Some("true"));
    }
}
