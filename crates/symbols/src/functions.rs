// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions by address.

/// How far the last function of a list reaches where its size is not known: a page.
const LAST_BYTES: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Function {
    begin: u64,
    end: u64,
    /// Where its name begins and ends in [`Functions::names`].
    name: (u32, u32),
}

/// Functions of an image, sorted by address.
///
/// Memory: 24 bytes each and the names. A name is found in logarithmic time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Functions {
    all: Vec<Function>,
    names: String,
}

/// A function while they are gathered; of several at one address the greatest `rank` stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub begin: u64,
    /// 0: not known.
    pub bytes: u64,
    /// Of one whose size is not known, the address that it does not reach.
    pub most: u64,
    pub name: &'a str,
    /// Whether it is visible outside of its file, and not weak.
    pub is_global: bool,
    pub is_weak: bool,
}

impl Found<'_> {
    /// Which of several names for one address people know it by: the one with a size, not weak, global, with
    /// the fewest underscores in front, the longest; of the same name the larger function.
    fn rank(&self) -> (bool, bool, bool, usize, usize, u64) {
        let underscores = self.name.bytes().take_while(|byte| *byte == b'_').count();
        let few = usize::MAX - underscores;
        (self.bytes > 0, !self.is_weak, self.is_global, few, self.name.len(), self.bytes)
    }
}

impl Functions {
    /// Of any order.
    pub(crate) fn sorted(mut found: Vec<Found<'_>>) -> Self {
        found.retain(|of| !of.name.is_empty());
        found.sort_by(|one, other| {
            one.begin.cmp(&other.begin).then_with(|| other.rank().cmp(&one.rank()))
        });
        found.dedup_by_key(|of| of.begin);
        let mut functions = Self::default();
        for (index, of) in found.iter().enumerate() {
            let next = found.get(index + 1).map(|next| next.begin);
            let Some(name) = functions.add_name(of.name) else { break };
            // One without a size, as those written in assembly, reaches to the next.
            let end = match (of.bytes, next) {
                (0, Some(next)) => next.min(of.most),
                (0, None) => of.begin.saturating_add(LAST_BYTES).min(of.most),
                (bytes, _) => of.begin.saturating_add(bytes),
            };
            functions.all.push(Function { begin: of.begin, end, name });
        }
        functions
    }

    /// `None` where there are more than 4 GiB of names.
    fn add_name(&mut self, name: &str) -> Option<(u32, u32)> {
        let begin = u32::try_from(self.names.len()).ok()?;
        let end = u32::try_from(self.names.len().checked_add(name.len())?).ok()?;
        self.names.push_str(name);
        Some((begin, end))
    }

    /// Of the text of `/proc/kallsyms`: `ADDRESS TYPE NAME [MODULE]` [man 5 proc]. Without the right to see
    /// addresses they are all 0, and there is none.
    #[must_use]
    pub fn of_kallsyms(text: &str) -> Self {
        let line = |line| {
            let mut words = str::split_whitespace(line);
            let begin = u64::from_str_radix(words.next()?, 16).ok().filter(|begin| *begin != 0)?;
            let kind = words.next().filter(|kind| matches!(*kind, "t" | "T" | "w" | "W"))?;
            let (is_global, is_weak) = (kind == "T", kind.eq_ignore_ascii_case("w"));
            let name = words.next()?;
            Some(Found { begin, bytes: 0, most: u64::MAX, name, is_global, is_weak })
        };
        Self::sorted(text.lines().filter_map(line).collect())
    }

    /// Of the text of `/tmp/perf-PID.map`: `ADDRESS BYTES NAME`, numbers hexadecimal, the name to the end of
    /// the line [Linux, tools/perf/Documentation/jit-interface.txt]. Of what was compiled again at one
    /// address, the last is meant.
    #[must_use]
    pub fn of_perf_map(text: &str) -> Self {
        let line = |line: &str| -> Option<(u64, u64, usize, usize)> {
            let at = line.as_ptr() as usize - text.as_ptr() as usize;
            let (begin, rest) = line.trim_start().split_once(' ')?;
            let (bytes, name) = rest.trim_start().split_once(' ')?;
            let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
            let behind = at + (name.as_ptr() as usize - line.as_ptr() as usize);
            Some((number(begin)?, number(bytes)?, behind, behind + name.len()))
        };
        let lines: Vec<_> = text.lines().filter_map(line).collect();
        let mut last = std::collections::BTreeMap::new();
        for (begin, bytes, from, to) in lines {
            last.insert(begin, (bytes, from, to));
        }
        let found = last.into_iter().map(|(begin, (bytes, from, to))| {
            let name = text.get(from..to).unwrap_or_default().trim();
            Found { begin, bytes, most: u64::MAX, name, is_global: true, is_weak: false }
        });
        Self::sorted(found.collect())
    }

    /// The name of the function at an address, as the linker has it.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&str> {
        let of = self.function(address)?;
        self.names.get(of.name.0 as usize..of.name.1 as usize)
    }

    /// Offset of an address from the start of its function, in bytes.
    #[must_use]
    pub fn offset_at(&self, address: u64) -> Option<u64> {
        Some(address - self.function(address)?.begin)
    }

    fn function(&self, address: u64) -> Option<&Function> {
        let index = self.all.partition_point(|of| of.begin <= address).checked_sub(1)?;
        self.all.get(index).filter(|of| address < of.end)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// Longest name that is read as one of C++ or Rust: the time that takes grows with more than the length.
const MANGLED_MAX: usize = 1 << 14;

/// Demangles names of C++ and Rust, without parameter types; other names are unchanged.
#[must_use]
pub fn demangled(name: &str) -> String {
    if name.len() > MANGLED_MAX {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // Without the hash of the crate.
        return format!("{rust:#}");
    }
    // Clones that the compiler made of a function keep its name, with a prefix before others'
    // names.
    let (base, clone) = match name.find('.') {
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    };
    if !base.starts_with("_Z") {
        return name.to_owned();
    }
    let parsed = cpp_demangle::Symbol::new(base).ok();
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let text = parsed.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    text.map_or_else(|| name.to_owned(), |text| format!("{text}{clone}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_several_names_the_one_that_people_know_is_taken() {
        let of = |name, bytes, is_global, is_weak| Found {
            begin: 16,
            bytes,
            most: 40,
            name,
            is_global,
            is_weak,
        };
        let all = vec![
            of("__memcpy", 8, true, false),
            of("memcpy", 8, true, false),
            of("weak_memcpy", 8, true, true),
            of("label", 0, true, false),
        ];
        let functions = Functions::sorted(all);
        assert_eq!(
            [15, 16, 23, 24].map(|at| functions.at(at)),
            [None, Some("memcpy"), Some("memcpy"), None]
        );
    }

    #[test]
    fn functions_without_a_size_reach_to_the_next() {
        let kernel = Functions::of_kallsyms("10 t a\n20 T b\n30 D data\n0 t none\nxyz\n");
        assert_eq!(kernel.len(), 2);
        assert_eq!(
            [0x1f, 0x20, 0x101f, 0x1020].map(|at| kernel.at(at)),
            [Some("a"), Some("b"), Some("b"), None]
        );
    }

    #[test]
    fn names_of_a_perf_map_may_have_spaces_and_the_last_one_counts() {
        let text = "7f00 10 LazyCompile:*go /a b.js:1\n 0x7f00 20 Later one\nbad\n8000 5 x\n";
        let functions = Functions::of_perf_map(text);
        assert_eq!(
            [0x7f1f, 0x8004, 0x8005].map(|at| functions.at(at)),
            [Some("Later one"), Some("x"), None]
        );
    }

    #[test]
    fn of_one_name_at_one_address_the_larger_function_counts() {
        let found = |bytes| Found {
            begin: 167,
            bytes,
            most: 250,
            name: "c",
            is_global: true,
            is_weak: false,
        };
        for all in [vec![found(1), found(2)], vec![found(2), found(1)]] {
            assert_eq!(Functions::sorted(all).at(168), Some("c"));
        }
    }

    #[test]
    fn names_of_compilers_are_read() {
        assert_eq!(demangled("_ZN3foo3barEi"), "foo::bar");
        assert_eq!(demangled("_ZN3foo3barEi.constprop.0"), "foo::bar.constprop.0");
        assert_eq!(demangled("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        for plain in ["main", "_Z", "do_one.part.0", "", "_ZN"] {
            assert_eq!(demangled(plain), plain);
        }
    }

    proptest! {
        #[test]
        fn a_function_is_found_by_looking_at_all(
            all in prop::collection::vec((1u64..200, 0u64..20, 0usize..4), 0..40),
            at in 0u64..300,
        ) {
            let names = ["a", "_b", "__c", "dd"];
            let found: Vec<Found<'_>> = all.iter().map(|(begin, bytes, name)| {
                let (begin, bytes, name) = (*begin, *bytes, names[*name]);
                Found { begin, bytes, most: 250, name, is_global: true, is_weak: false }
            }).collect();
            let functions = Functions::sorted(found.clone());
            // The best of those that begin last at or before the address.
            let begin = found.iter().map(|of| of.begin).filter(|begin| *begin <= at).max();
            let best = found.iter().filter(|of| Some(of.begin) == begin).max_by_key(|of| of.rank());
            let next = found.iter().map(|of| of.begin).filter(|next| Some(*next) > begin).min();
            let expected = best.filter(|of| {
                let end = match of.bytes {
                    0 => next.unwrap_or(of.begin + LAST_BYTES).min(250),
                    bytes => of.begin + bytes,
                };
                at < end
            });
            prop_assert_eq!(functions.at(at), expected.map(|of| of.name));
        }

        #[test]
        fn any_text_is_read(text in "\\PC{0,80}") {
            let _ = (Functions::of_kallsyms(&text), Functions::of_perf_map(&text), demangled(&text));
        }
    }
}
