//! Turns a tree into a typed value, so that every error knows its key and place.

use std::cell::RefCell;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::fault::Fault;
use super::tree::{Node, Value};
use crate::policy::CHOICE;

/// Step on the path from the root.
pub(super) struct Step<'p> {
    pub(super) parent: Option<&'p Step<'p>>,
    pub(super) name: String,
}

impl Step<'_> {
    fn path(&self, path: &mut Vec<String>) {
        if let Some(parent) = self.parent {
            parent.path(path);
        }
        path.push(self.name.clone());
    }
}

/// A node, the way to it, and what has been noticed so far.
#[derive(Clone, Copy)]
pub(super) struct Reader<'de, 'c> {
    node: &'de Node,
    step: Option<&'c Step<'c>>,
    /// Paths of alternatives that a higher layer has replaced.
    replaced: &'c RefCell<Vec<Vec<String>>>,
}

impl<'de, 'c> Reader<'de, 'c> {
    /// Reads the value at the end of a path from the root.
    pub(super) fn at(
        node: &'de Node,
        step: Option<&'c Step<'c>>,
        replaced: &'c RefCell<Vec<Vec<String>>>,
    ) -> Reader<'de, 'c> {
        Reader { node, step, replaced }
    }

    fn child<'s>(self, node: &'de Node, step: &'s Step<'s>) -> Reader<'de, 's>
    where
        'c: 's,
    {
        Reader { node, step: Some(step), replaced: self.replaced }
    }

    fn path(self) -> Vec<String> {
        let mut path = Vec::new();
        if let Some(step) = self.step {
            step.path(&mut path);
        }
        path
    }

    /// Points the fault at this value, unless it already points deeper.
    pub(super) fn locate(self, fault: Fault) -> Fault {
        fault.at(|| {
            let path = self.path();
            let key = path.join(".");
            // A table has no value to point at; the reader recognises its key or header.
            let place = match &self.node.value {
                Value::Table(_) => self.node.origin.key_place(&key),
                Value::Array(_) | Value::Scalar(_) => self.node.origin.value_place(&key),
            };
            (path, place)
        })
    }

    /// Points the fault at the key of an entry of this table.
    fn locate_key(self, fault: Fault, key: &str, entry: &Node) -> Fault {
        fault.at(|| {
            let mut path = self.path();
            path.push(key.to_owned());
            let place = entry.origin.key_place(&path.join("."));
            (path, place)
        })
    }

    /// Returns the one entry of a choice written as a table. If layers disagree, the highest layer chooses: tables
    /// merge key by key, so the alternative of a lower layer is still present.
    fn chosen(self) -> Result<(&'de String, &'de Node), Fault> {
        let Value::Table(entries) = &self.node.value else {
            return Err(self.locate(Fault::custom("expected a name, or a table with one name as its key")));
        };
        let top = entries.values().map(|n| n.origin.layer).max();
        let (chosen, lower): (Vec<_>, Vec<_>) =
            entries.iter().partition(|(_, n)| Some(n.origin.layer) == top);
        match chosen[..] {
            [choice] => {
                for (name, _) in lower {
                    let mut path = self.path();
                    path.push(name.clone());
                    self.replaced.borrow_mut().push(path);
                }
                Ok(choice)
            }
            [] => {
                Err(self
                    .locate(Fault::custom("an empty table makes no choice; expected one name as its key")))
            }
            [_, (second, node), ..] => {
                let names: Vec<_> = chosen.iter().map(|(name, _)| format!("`{name}`")).collect();
                let fault = Fault::custom(format_args!("choose only one of {}", names.join(", ")));
                Err(self.locate_key(fault, second, node))
            }
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let result = match &self.node.value {
            Value::Table(entries) => {
                visitor.visit_map(Table { table: self, rest: entries.iter(), value: None })
            }
            Value::Array(items) => visitor.visit_seq(Array { array: self, items, next: 0 }),
            Value::Scalar(toml::Value::String(text)) => visitor.visit_borrowed_str(text),
            Value::Scalar(toml::Value::Integer(number)) => visitor.visit_i64(*number),
            Value::Scalar(toml::Value::Float(number)) => visitor.visit_f64(*number),
            Value::Scalar(toml::Value::Boolean(truth)) => visitor.visit_bool(*truth),
            Value::Scalar(_) => Err(Fault::invalid_type(Unexpected::Other("a date"), &visitor)),
        };
        result.map_err(|fault| self.locate(fault))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name == CHOICE && matches!(self.node.value, Value::Table(_)) {
            let only = self.chosen()?;
            let entry = Table { table: self, rest: std::iter::once(only), value: None };
            return visitor.visit_map(entry).map_err(|fault| self.locate(fault));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let choice = match &self.node.value {
            Value::Scalar(toml::Value::String(name)) => Choice { whole: self, name, parameters: None },
            _ => {
                let (name, node) = self.chosen()?;
                Choice { whole: self, name, parameters: Some(node) }
            }
        };
        visitor.visit_enum(choice).map_err(|fault| self.locate(fault))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// Entries of a table.
struct Table<'de, 'c, I> {
    table: Reader<'de, 'c>,
    rest: I,
    value: Option<(&'de String, &'de Node)>,
}

/// Key of an entry; a fault in it is an unknown key or name.
struct Key<'de>(&'de str);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Fault;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.0)
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, I: Iterator<Item = (&'de String, &'de Node)>> MapAccess<'de> for Table<'de, '_, I> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.value = self.rest.next();
        let Some((key, node)) = self.value else { return Ok(None) };
        seed.deserialize(Key(key)).map(Some).map_err(|fault| self.table.locate_key(fault, key, node))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        let (key, node) = self.value.ok_or_else(|| Fault::custom("a value was requested before its key"))?;
        let step = Step { parent: self.table.step, name: key.clone() };
        let child = self.table.child(node, &step);
        // A type that checks its value after reading it has no reader to point with.
        seed.deserialize(child).map_err(|fault| child.locate(fault))
    }
}

/// Elements of an array.
struct Array<'de, 'c> {
    array: Reader<'de, 'c>,
    items: &'de [Node],
    next: usize,
}

impl<'de> SeqAccess<'de> for Array<'de, '_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(node) = self.items.get(self.next) else { return Ok(None) };
        let step = Step { parent: self.array.step, name: self.next.to_string() };
        self.next += 1;
        seed.deserialize(self.array.child(node, &step)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

/// Choice: a bare name, or a name with parameters.
struct Choice<'de, 'c> {
    whole: Reader<'de, 'c>,
    name: &'de str,
    parameters: Option<&'de Node>,
}

impl<'de> Choice<'de, '_> {
    fn with_parameters<T>(self, read: impl FnOnce(Reader<'de, '_>) -> Result<T, Fault>) -> Result<T, Fault> {
        let Some(node) = self.parameters else {
            let name = self.name;
            return Err(Fault::custom(format_args!("`{name}` needs parameters: {{ {name} = {{ … }} }}")));
        };
        let step = Step { parent: self.whole.step, name: self.name.to_owned() };
        read(self.whole.child(node, &step))
    }
}

impl<'de> EnumAccess<'de> for Choice<'de, '_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let value = seed.deserialize(Key(self.name)).map_err(|fault| match self.parameters {
            Some(node) => self.whole.locate_key(fault, self.name, node),
            None => self.whole.locate(fault),
        })?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'de, '_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.parameters {
            None => Ok(()),
            Some(node) if matches!(&node.value, Value::Table(entries) if entries.is_empty()) => Ok(()),
            Some(node) => {
                let fault = Fault::custom(format_args!("`{}` takes no parameters", self.name));
                Err(self.whole.locate_key(fault, self.name, node))
            }
        }
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        self.with_parameters(|reader| seed.deserialize(reader))
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.with_parameters(|reader| de::Deserializer::deserialize_any(reader, visitor))
    }
    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.with_parameters(|reader| de::Deserializer::deserialize_any(reader, visitor))
    }
}
