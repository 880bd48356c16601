//! What a process may call.
//!
//! Reference: Handley et al. (XORP), §7: the Finder resolves only what it is configured to permit,
//! and argument ranges can be restricted.
//!
//! ```text
//! access  = rule *( blank rule )
//! rule    = target [ "/" interface [ "/" version [ "/" method ] ] ] [ "?" limit *( "&" limit ) ]
//! limit   = as in the ranges of arguments: argument "=" range
//! ```
//!
//! `*` stands for anything, as does a part that is left out. The first rule that fits decides.

/// The calls that one process may make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// Target, interface, version and method, as far as they are said.
    parts: Vec<String>,
    limits: String,
}

impl Access {
    /// Every call, without limits.
    #[must_use]
    pub fn everything() -> Self {
        Self { rules: vec![Rule { parts: vec!["*".to_owned()], limits: String::new() }] }
    }

    /// Reads rules.
    ///
    /// # Errors
    /// A sentence that says which rule is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rules = text.split_whitespace().map(Rule::parse);
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// The limits on the arguments of a call that is allowed; `None` if it is not. The target is known by
    /// its class and its instance.
    #[must_use]
    pub fn limits(&self, target: [&str; 2], path: &str) -> Option<&str> {
        let rule = self.rules.iter().find(|rule| rule.fits(target, path))?;
        Some(&rule.limits)
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, String> {
        let (path, limits) = text.split_once('?').unwrap_or((text, ""));
        let parts: Vec<_> = path.split('/').map(str::to_owned).collect();
        if parts.len() > 4 || parts.iter().any(String::is_empty) {
            return Err(format!(
                "the access rule `{text}` is not of the form target/interface/version/method?limits"
            ));
        }
        Ok(Self { parts, limits: limits.replace('&', " ") })
    }

    fn fits(&self, target: [&str; 2], path: &str) -> bool {
        let mut parts = self.parts.iter().map(String::as_str);
        let fits_target = parts.next().is_some_and(|part| part == "*" || target.contains(&part));
        fits_target && parts.zip(path.split('/')).all(|(part, found)| part == "*" || part == found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: [&str; 2] = ["rib", "rib-1"];

    #[test]
    fn the_first_rule_that_fits_decides() {
        let access = Access::parse(
            "rib/rib/1.0/add_route?net=10.0.0.0/8&metric=1..9 rib/rib/*/show rib-1/common fea",
        )
        .unwrap();
        let limits = |path| access.limits(TARGET, path);
        assert_eq!(limits("rib/1.0/add_route"), Some("net=10.0.0.0/8 metric=1..9"));
        assert_eq!(limits("rib/2.3/show"), Some(""));
        assert_eq!(limits("common/0.1/get_status"), Some(""));
        assert_eq!(limits("rib/1.0/delete_route"), None);
        assert_eq!(access.limits(["fea", "fea"], "any/1.0/thing"), Some(""));
        assert_eq!(access.limits(["bgp", "bgp"], "rib/1.0/add_route"), None);
    }

    #[test]
    fn nothing_is_allowed_by_no_rules_and_everything_by_a_star() {
        assert_eq!(Access::default().limits(TARGET, "rib/1.0/show"), None);
        let all = Access::parse("*").unwrap();
        assert_eq!(all, Access::everything());
        assert_eq!(all.limits(TARGET, "rib/1.0/show"), Some(""));
    }

    #[test]
    fn rules_with_empty_or_too_many_parts_are_errors() {
        for text in ["rib//1.0", "/rib", "a/b/c/d/e", "?x=1"] {
            let error = Access::parse(text).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
