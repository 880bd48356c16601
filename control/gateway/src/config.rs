//! The statement `gateway { … }`.

use std::net::SocketAddr;

use weft_config::{Block, Document, Errors, Located};
use weft_keys::PrivateKey;

/// Its word in the configuration.
pub const STATEMENT: &str = "gateway";

/// What may be configured.
pub const SCHEMA: &str = r#"
container gateway {
    help "lets operators on other machines call this node's components";
    leaf listen socket { mandatory; help "where they connect"; }
    leaf key text { mandatory; secret; form "the line between BEGIN and END of a private key's file"; help "proves to them which node this is"; }
}
"#;

/// No other word of the statement is as long as what could be a key, or a part of one.
const SHORTEST_SECRET: usize = 44;

/// Where the gateway listens, and who it is.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) key: PrivateKey,
}

/// Reads `gateway { listen 192.0.2.1:6500; key …; }`.
///
/// # Errors
/// Every mistake with its place; none of them shows the key.
pub(crate) fn read(source: &str, text: &str) -> Result<Config, String> {
    try_read(source, text).map_err(|errors| without_keys(text, errors.to_string()))
}

fn try_read(source: &str, text: &str) -> Result<Config, Errors> {
    let document = Document::parse(source, text)?;
    let mut block = document.block();
    let config = block.required_one(STATEMENT)?.read_block(read_block)?;
    block.finish()?;
    Ok(config)
}

/// Messages show the lines that they are about, which may hold what is as long as a key.
fn without_keys(text: &str, mut message: String) -> String {
    let words = text.split(|char: char| char.is_whitespace() || "\";{}".contains(char));
    for word in words.filter(|word| word.len() >= SHORTEST_SECRET) {
        message = message.replace(word, &"*".repeat(word.chars().count()));
    }
    message
}

fn read_block(block: &mut Block<'_>) -> Result<Config, Errors> {
    let listen: Located<String> = block.required("listen")?;
    let address = listen.value.parse().map_err(|_| {
        listen.error(format!(
            "`{}` is no address and port: give one of this node, such as 192.0.2.1:6500 or \
             [2001:db8::1]:6500",
            listen.value
        ))
    })?;
    let key: Located<String> = block.required("key")?;
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", key.value);
    let private = PrivateKey::from_pkcs8_pem(&pem).map_err(|_| {
        key.error(
            "this is no private key: give the one line between BEGIN and END of a file that \
             `weft xia id new` has written",
        )
    })?;
    Ok(Config { listen: address, key: private })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8410 §10.3, first example.
    const KEY: &str = "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC";

    #[test]
    fn a_statement_says_where_and_who() {
        let text = format!("gateway {{ listen \"[2001:db8::1]:6500\"; key \"{KEY}\"; }}");
        let config = read("t", &text).unwrap();
        assert_eq!(config.listen, "[2001:db8::1]:6500".parse().unwrap());
        let hash = config.key.public_key().hash().to_string();
        assert_eq!(hash, "a1e9156054e04fac899ae9f275132cdc07a5dbc4");
    }

    #[test]
    fn mistakes_have_a_place_and_show_no_key() {
        for (text, part) in [
            ("gateway { listen 192.0.2.1; key \"KEY\"; }", "192.0.2.1"),
            ("gateway { listen 192.0.2.1:1; key \"KEYx\"; }", "no private key"),
            ("gateway { listen 192.0.2.1:1; }", "key"),
            ("gateway { key \"KEY\"; }", "listen"),
            ("gateway { listen 192.0.2.1:1; key \"KEY\"; more; }", "more"),
        ] {
            let error = read("t", &text.replace("KEY", KEY)).unwrap_err();
            assert!(error.contains(part) && error.contains("t:1:"), "{error}");
            assert!(!error.contains(KEY), "{error}");
        }
    }
}
