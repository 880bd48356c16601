//! The Rust text of one interface.

use std::fmt::Write;

use crate::{Family, Field, Interface, Method, Record, Type};

/// Words that Rust keeps for itself and that may be names of arguments.
const KEYWORDS: [&str; 13] = [
    "type", "match", "use", "in", "as", "move", "ref", "loop", "fn", "mod", "where", "for",
    "static",
];

pub(super) fn module(interface: &Interface, source: &str) -> String {
    let mut out = Writer::default();
    out.interface(interface, source);
    for record in &interface.records {
        out.record(record);
    }
    for (index, method) in interface.methods.iter().enumerate() {
        out.method(index, method);
    }
    out.calls(interface);
    out.0
}

#[derive(Default)]
struct Writer(String);

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($argument:tt)*) => {
        let _ = writeln!($out.0, $($argument)*);
    };
}

impl Writer {
    fn doc(&mut self, indent: &str, text: &str, otherwise: &str) {
        let text = if text.is_empty() { otherwise } else { text };
        for part in text.lines() {
            // Square brackets would be links, which a description from outside of Rust does not mean.
            let part = part.replace('[', "\\[").replace(']', "\\]");
            line!(self, "{indent}/// {part}");
        }
    }

    fn interface(&mut self, interface: &Interface, source: &str) {
        let Interface { name, version, .. } = interface;
        self.doc("", &interface.doc, "The interface.");
        line!(self, "pub static INTERFACE: ::weft_xrl::Interface = ::weft_xrl::Interface {{");
        line!(self, "    name: {name:?},");
        line!(
            self,
            "    version: ::weft_xrl::Version {{ major: {}, minor: {} }},",
            version.major,
            version.minor
        );
        let names: Vec<_> = interface.methods.iter().map(|method| &method.name).collect();
        line!(self, "    methods: &{names:?},");
        line!(self, "    text: {source:?},");
        line!(self, "}};\n");
    }

    fn record(&mut self, record: &Record) {
        let name = camel(&record.name);
        self.doc("", &record.doc, "A record.");
        self.structure(&name, &record.fields);
        line!(self, "impl ::weft_xrl::Record for {name} {{");
        let tags: Vec<_> =
            record.fields.iter().map(|field| format!("{}::TAG", atom(field))).collect();
        line!(self, "    const LAYOUT: &'static [u8] = &[{}];\n", tags.join(", "));
        line!(self, "    fn put_fields(self, to: &mut ::weft_xrl::Encoder) {{");
        for field in &record.fields {
            line!(self, "        ::weft_xrl::Atom::put(self.{}, to);", snake(&field.name));
        }
        line!(self, "    }}\n");
        line!(
            self,
            "    fn take_fields(from: &mut ::weft_xrl::Decoder<'_>) -> Result<Self, ::weft_xrl::Malformed> {{"
        );
        line!(self, "        Ok(Self {{");
        for field in &record.fields {
            line!(self, "            {}: ::weft_xrl::Atom::take(from)?,", snake(&field.name));
        }
        line!(self, "        }})\n    }}\n}}\n");
        line!(self, "::weft_xrl::record_is_atom!({name});\n");
    }

    fn method(&mut self, index: usize, method: &Method) {
        let name = camel(&method.name);
        self.doc("", &method.doc, "A request.");
        self.arguments(&name, &method.args);
        let reply = match method.returns.is_empty() {
            true => "()".to_owned(),
            false => {
                let reply = format!("{name}Reply");
                self.doc("", "", &format!("What `{}` answers.", method.name));
                self.arguments(&reply, &method.returns);
                reply
            }
        };
        line!(self, "impl ::weft_xrl::Request for {name} {{");
        line!(self, "    const INTERFACE: &'static ::weft_xrl::Interface = &INTERFACE;");
        line!(self, "    const METHOD: u16 = {index};");
        line!(self, "    type Reply = {reply};\n}}\n");
    }

    fn structure(&mut self, name: &str, fields: &[Field]) {
        let moves_only = fields.iter().any(|field| has_handle(&field.kind));
        let mut derive = if moves_only { "Debug" } else { "Clone, Debug, PartialEq" }.to_owned();
        // So that callers who say some arguments need not change when another optional one is added.
        if fields.iter().any(|field| field.optional) && fields.iter().all(has_default) {
            derive.push_str(", Default");
        }
        line!(self, "#[derive({derive})]");
        if fields.is_empty() {
            line!(self, "pub struct {name};\n");
            return;
        }
        line!(self, "pub struct {name} {{");
        for field in fields {
            self.doc("    ", &field.doc, &format!("`{}`", field.name));
            line!(self, "    pub {}: {},", snake(&field.name), rust_type(field));
        }
        line!(self, "}}\n");
    }

    fn arguments(&mut self, name: &str, fields: &[Field]) {
        self.structure(name, fields);
        line!(self, "impl ::weft_xrl::Arguments for {name} {{");
        let to = if fields.is_empty() { "_" } else { "to" };
        line!(self, "    fn encode(self, {to}: &mut ::weft_xrl::Encoder) {{");
        for field in fields {
            let put = if field.optional { "put_optional" } else { "put" };
            line!(self, "        to.{put}(self.{});", snake(&field.name));
        }
        line!(self, "    }}\n");
        let from = if fields.is_empty() { "_" } else { "from" };
        line!(
            self,
            "    fn decode({from}: &mut ::weft_xrl::Decoder<'_>) -> Result<Self, ::weft_xrl::Malformed> {{"
        );
        if fields.is_empty() {
            line!(self, "        Ok(Self)\n    }}\n}}\n");
            return;
        }
        line!(self, "        Ok(Self {{");
        for field in fields {
            let take = if field.optional { "take_optional" } else { "take" };
            line!(self, "            {}: from.{take}({:?})?,", snake(&field.name), field.name);
        }
        line!(self, "        }})\n    }}\n}}\n");
    }

    fn calls(&mut self, interface: &Interface) {
        line!(self, "/// A call of any method of `{interface}`.");
        line!(self, "#[derive(Debug)]\npub enum Call {{");
        for method in &interface.methods {
            self.doc("    ", &method.doc, &format!("`{}`", method.name));
            line!(self, "    {0}({0}),", camel(&method.name));
        }
        line!(self, "}}\n");
        line!(self, "impl ::weft_xrl::Calls for Call {{");
        line!(self, "    const INTERFACE: &'static ::weft_xrl::Interface = &INTERFACE;\n");
        line!(
            self,
            "    fn decode(method: u16, from: &mut ::weft_xrl::Decoder<'_>) -> Result<Self, ::weft_xrl::Malformed> {{"
        );
        line!(self, "        match method {{");
        for (index, method) in interface.methods.iter().enumerate() {
            let name = camel(&method.name);
            line!(
                self,
                "            {index} => Ok(Self::{name}(::weft_xrl::Arguments::decode(from)?)),"
            );
        }
        line!(self, "            _ => Err(::weft_xrl::Malformed::no_method(method)),");
        line!(self, "        }}\n    }}\n}}");
    }
}

fn has_handle(kind: &Type) -> bool {
    match kind {
        Type::Handle => true,
        Type::List(inner) => has_handle(inner),
        _ => false,
    }
}

/// Whether there is a value that a field has if nothing is said.
fn has_default(field: &Field) -> bool {
    let is_plain = match &field.kind {
        Type::I32 | Type::U32 | Type::I64 | Type::U64 | Type::Fp64 | Type::Bool => true,
        Type::Txt | Type::Binary | Type::List(_) => true,
        Type::Mac | Type::Ip(_) | Type::IpNet(_) | Type::Id | Type::Handle | Type::Record(_) => {
            false
        }
    };
    field.optional || is_plain
}

/// The type that has the field's tag, as it stands in an expression.
fn atom(field: &Field) -> String {
    format!("<{} as ::weft_xrl::Atom>", plain_type(&field.kind))
}

fn rust_type(field: &Field) -> String {
    let plain = plain_type(&field.kind);
    if field.optional { format!("Option<{plain}>") } else { plain }
}

fn plain_type(kind: &Type) -> String {
    match kind {
        Type::I32 => "i32".to_owned(),
        Type::U32 => "u32".to_owned(),
        Type::I64 => "i64".to_owned(),
        Type::U64 => "u64".to_owned(),
        Type::Fp64 => "f64".to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Txt => "String".to_owned(),
        Type::Binary => "::weft_xrl::Binary".to_owned(),
        Type::Mac => "::weft_xrl::Mac".to_owned(),
        Type::Ip(Family::Any) => "::std::net::IpAddr".to_owned(),
        Type::Ip(Family::V4) => "::std::net::Ipv4Addr".to_owned(),
        Type::Ip(Family::V6) => "::std::net::Ipv6Addr".to_owned(),
        Type::IpNet(Family::Any) => "::weft_xrl::IpNet".to_owned(),
        Type::IpNet(Family::V4) => "::weft_xrl::Ipv4Net".to_owned(),
        Type::IpNet(Family::V6) => "::weft_xrl::Ipv6Net".to_owned(),
        Type::Id => "::weft_xrl::Id".to_owned(),
        Type::Handle => "::weft_xrl::Handle".to_owned(),
        Type::List(inner) => format!("Vec<{}>", plain_type(inner)),
        Type::Record(name) => camel(name),
    }
}

/// `add_route` as a field or function: itself, with `-` as `_` and keywords made raw.
fn snake(name: &str) -> String {
    let name = name.replace('-', "_").to_ascii_lowercase();
    if KEYWORDS.contains(&name.as_str()) { format!("r#{name}") } else { name }
}

/// `add_route` as a type: `AddRoute`.
fn camel(name: &str) -> String {
    let words = name.split(['_', '-']).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}
