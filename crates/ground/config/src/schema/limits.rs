//! Limits of values, declared at the fields of specification types, and the check for values outside them.
//!
//! | at a field | means |
//! | --- | --- |
//! | `range(min = 1, max = 64)` | a number from 1 to 64 |
//! | `extend("x-minimum" = "1B", "x-maximum" = "1MiB")` | a quantity from 1 B to 1 MiB; its type has wider ones |
//! | `extend("x-power-of-two" = true)` | a number or a size that is a power of two |
//! | `extend("multipleOf" = 8)`, `extend("x-multiple-of" = "4KiB")` | a number, or a size, that is a multiple |
//! | `extend("enum" = [8, 16])` | one of these numbers |
//! | `extend("x-unit" = "cycles")` | a number that counts these |
//!
//! All of it within `#[schemars(...)]`. A table says with [`product`] how large products of its numbers may be.

use serde_json::{Value, json};

use super::walk::{Walker, alternatives, join};
use super::{Node, Param, SpecError};
use crate::units::{LEAST_KEY as LEAST, MOST_KEY as MOST, QUANTITY_KEY, Quantity};

const POWER_OF_TWO: &str = "x-power-of-two";
const MULTIPLE_OF: &str = "x-multiple-of";
/// Key in a JSON Schema that names the unit of a count.
pub(super) const UNIT: &str = "x-unit";
/// Key in a JSON Schema that lists the product limits of a table, each from [`product`].
const PRODUCTS: &str = "x-products";

/// Returns an element of the list `x-products`: the product of the numbers at `keys` is at most `most`. `what` names
/// what the product counts. A key may be in a nested table.
pub fn product(most: u64, what: &str, keys: &[&str]) -> Value {
    json!({ "maximum": most, "of": what, "keys": keys })
}

/// Returns every value of a table outside a limit of the schema document. Products are checked only if nothing else is
/// wrong, because a product of out-of-range numbers adds no information. Values of the wrong kind are skipped.
pub fn beyond(document: &Value, table: &toml::Table) -> Vec<SpecError> {
    let mut search = Search { walker: Walker::new(document), faults: Vec::new(), products: Vec::new() };
    search.visit("", document, &toml::Value::Table(table.clone()));
    if search.faults.is_empty() { search.products } else { search.faults }
}

struct Search<'s> {
    walker: Walker<'s>,
    faults: Vec<SpecError>,
    products: Vec<SpecError>,
}

impl<'s> Search<'s> {
    fn visit(&mut self, key: &str, schema: &'s Value, value: &toml::Value) {
        let depth = self.walker.open.len();
        let (schema, _) = self.walker.resolve(schema);
        let name = key.rsplit('.').next().unwrap_or(key);
        if let Some(properties) = schema.properties() {
            for (name, property) in properties {
                if let Some(inner) = value.get(name) {
                    self.visit(&join(key, name), property, inner);
                }
            }
            self.products.extend(products(&schema).filter_map(|product| too_many(key, product, value)));
            self.chosen(key, &schema, value);
        } else if let Some(what) = fault(name, &schema, value) {
            self.faults.push(SpecError::new(key, what));
        } else {
            self.inside(key, &schema, value);
        }
        self.walker.open.truncate(depth);
    }

    /// Checks the parameters of the chosen alternative.
    fn chosen(&mut self, key: &str, schema: &Node<'s>, value: &toml::Value) {
        for (name, parameters) in alternatives(schema) {
            if let (Some(parameters), Some(chosen)) = (parameters, value.get(name.as_str())) {
                self.visit(&join(key, &name), parameters, chosen);
            }
        }
    }

    /// Checks the parameters of the chosen alternative, the elements of an array, and tables under free names.
    fn inside(&mut self, key: &str, schema: &Node<'s>, value: &toml::Value) {
        self.chosen(key, schema, value);
        let tables = self.walker.table_element(schema);
        match (value, tables, schema.document("items")) {
            (toml::Value::Array(items), Some(element), _) => {
                for (n, item) in items.iter().enumerate() {
                    self.visit(&join(key, &n.to_string()), element, item);
                }
            }
            (toml::Value::Table(items), Some(element), _) => {
                for (name, item) in items {
                    self.visit(&join(key, name), element, item);
                }
            }
            // The whole array is the value of its key; the first fault is enough.
            (toml::Value::Array(items), None, Some(element)) => {
                let told = self.faults.len();
                for item in items {
                    self.visit(key, element, item);
                }
                self.faults.truncate(told + 1);
            }
            _ => {}
        }
    }
}

/// Describes what is wrong with a value.
fn fault(name: &str, schema: &Node<'_>, value: &toml::Value) -> Option<String> {
    match (schema.get(QUANTITY_KEY), value) {
        (Some(quantity), toml::Value::String(text)) => {
            let quantity = Quantity::named(quantity.as_str()?)?;
            of_quantity(name, quantity, schema, quantity.read(text).ok()?)
        }
        (None, toml::Value::Integer(number)) => of_number(name, schema, *number),
        (None, toml::Value::Float(number)) => of_real(schema, *number),
        _ => None,
    }
}

fn of_number(name: &str, schema: &Node<'_>, number: i64) -> Option<String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
    let is_listed = |list: &Vec<Value>| list.iter().any(|one| one.as_i64() == Some(number));
    let range = range(schema);
    if schema.get("enum").and_then(Value::as_array).is_some_and(|list| !is_listed(list)) {
        return Some(format!("{number} is out of range; allowed: {range}"));
    }
    let (least, most) = (bound("minimum"), bound("maximum"));
    let (is_below, is_above) = (least.is_some_and(|n| number < n), most.is_some_and(|n| number > n));
    if is_below && number == 0 && least == Some(1) {
        return Some(format!("`{name}` is 0, but must be at least 1; allowed: {range}"));
    }
    if let (true, Some(unit), Some(most)) = (is_above, schema.get(UNIT).and_then(Value::as_str), most) {
        return Some(format!("{number} {unit} are too long to simulate; the maximum is {most}"));
    }
    if is_below || is_above {
        return Some(format!("{number} is out of range; allowed: {range}"));
    }
    let is_power = u64::try_from(number).is_ok_and(u64::is_power_of_two);
    if schema.contains_key(POWER_OF_TWO) && !is_power {
        return Some(format!("{number} is not a power of two"));
    }
    let multiple = bound("multipleOf").filter(|of| number % of != 0)?;
    Some(format!("{number} is not a multiple of {multiple}"))
}

fn of_real(schema: &Node<'_>, number: f64) -> Option<String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let (least, above, most) = (bound("minimum"), bound("exclusiveMinimum"), bound("maximum"));
    if above.is_some_and(|n| number.is_nan() || number <= n) || most.is_some_and(|n| number > n) {
        let above = above.map(|n| format!("above {n}"));
        let most = most.map(|n| format!("at most {n}"));
        let bounds: Vec<String> = above.into_iter().chain(most).collect();
        return Some(format!("{number} is out of range; it must be {}", bounds.join(" and ")));
    }
    let is_below = least.is_some_and(|n| number < n);
    is_below.then(|| format!("{number} is out of range; allowed: {}", allowed(schema)))
}

fn of_quantity(name: &str, quantity: &Quantity, schema: &Node<'_>, amount: u64) -> Option<String> {
    let limit = |key: &str| {
        let text = schema.get(key)?.as_str()?;
        Some((text, quantity.read(text).ok()?))
    };
    let shown = quantity.write(amount);
    if let Some((least, _)) = limit(LEAST).filter(|(_, least)| amount < *least) {
        return Some(match (amount, quantity.too_little) {
            (0, "too short") => "the duration is zero; expected one above zero, such as 10us".to_owned(),
            (0, "too small") => format!("`{name}` is 0, but must be at least {least}"),
            (_, why) => format!("{shown} is {why}; the minimum is {least}"),
        });
    }
    if let Some((most, _)) = limit(MOST).filter(|(_, most)| amount > *most) {
        return Some(format!("{shown} is {}; the maximum is {most}", quantity.too_much));
    }
    if schema.contains_key(POWER_OF_TWO) && !amount.is_power_of_two() {
        return Some(format!("{shown} is not a power of two"));
    }
    let (multiple, _) = limit(MULTIPLE_OF).filter(|(_, of)| !amount.is_multiple_of(*of))?;
    Some(format!("{shown} is not a multiple of {multiple}"))
}

/// Returns the error of a product of a table's numbers that is too large. Missing numbers make no product.
fn too_many(table: &str, product: &Value, value: &toml::Value) -> Option<SpecError> {
    let number = |key: &str| key.split('.').try_fold(value, |at, name| at.get(name))?.as_integer();
    let keys: Vec<&str> = product.get("keys")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let numbers = keys.iter().map(|key| number(key)).collect::<Option<Vec<i64>>>()?;
    let found = numbers.iter().fold(1_u128, |n, x| n.saturating_mul(x.unsigned_abs().into()));
    let (most, of) = (product.get("maximum")?.as_u64()?, product.get("of")?.as_str()?);
    if found <= u128::from(most) {
        return None;
    }
    let what = format!("{found} {of} in all; at most {most} can be simulated");
    Some(SpecError::new(table, what).help(format!("lower one of {}", keys.join(", "))))
}

fn products<'s>(schema: &Node<'s>) -> impl Iterator<Item = &'s Value> {
    schema.document(PRODUCTS).and_then(Value::as_array).into_iter().flatten()
}

/// Adds a table's product limits to its keys: `at most 256 dies in all`.
pub(super) fn tell_products(table: &str, schema: &Node<'_>, params: &mut [Param]) {
    for product in products(schema) {
        let keys = product.get("keys").and_then(Value::as_array).into_iter().flatten();
        let keys: Vec<String> = keys.filter_map(Value::as_str).map(|key| join(table, key)).collect();
        let (Some(most), Some(of)) = (product.get("maximum"), product.get("of").and_then(Value::as_str))
        else {
            continue;
        };
        for param in params.iter_mut().filter(|param| keys.contains(&param.key)) {
            param.allowed.push_str(&format!("; at most {most} {of} in all"));
        }
    }
}

/// Describes the allowed values; empty if any value of the kind is allowed.
pub(super) fn allowed(schema: &Node<'_>) -> String {
    let text =
        |key: &str| schema.get(key).map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
    if let (None, Some(list)) = (schema.get(QUANTITY_KEY), numbers(schema)) {
        return list;
    }
    let bounds = if schema.contains_key(QUANTITY_KEY) {
        (text(LEAST), text(MOST))
    } else {
        let least = text("minimum").or_else(|| text("exclusiveMinimum").map(|n| format!("above {n}")));
        (least, text("maximum").or_else(|| text("exclusiveMaximum").map(|n| format!("below {n}"))))
    };
    let mut words = match bounds {
        (Some(least), Some(most)) if least.starts_with("above") => format!("{least} up to {most}"),
        (Some(least), None) if least.starts_with("above") => least,
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("{least} or more"),
        (None, Some(most)) => format!("up to {most}"),
        (None, None) => String::new(),
    };
    let multiple = text(MULTIPLE_OF).or_else(|| text("multipleOf")).map(|of| format!("a multiple of {of}"));
    for rule in schema.get(POWER_OF_TWO).map(|_| "a power of two".to_owned()).into_iter().chain(multiple) {
        words = if words.is_empty() { rule } else { format!("{words}, {rule}") };
    }
    words
}

/// Returns the listed numbers, if any.
fn numbers(schema: &Node<'_>) -> Option<String> {
    let list: Vec<String> =
        schema.get("enum")?.as_array()?.iter().filter(|n| n.is_number()).map(Value::to_string).collect();
    (!list.is_empty()).then(|| list.join(", "))
}

/// Describes the allowed numbers as [`allowed`] does; falls back to the bounds of the key's type.
fn range(schema: &Node<'_>) -> String {
    let widest = match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => i64::from(u32::MAX),
        _ => i64::MAX,
    };
    let mut bounded = schema.clone();
    if !bounded.contains_key("maximum") {
        bounded.set("maximum", widest.into());
    }
    allowed(&bounded)
}
