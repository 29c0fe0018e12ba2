// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How two clocks relate, by observations that may say anything.

use lateralis_analysis::relate::Observed;

/// Bytes of an observation: which kind, theirs, ours.
const OBSERVATION_BYTES: usize = 17;

/// Besides not panicking: what is said is an interval, and no observation lies outside of it.
pub fn check(bytes: &[u8]) {
    let mut observed = Observed::default();
    let mut all = Vec::new();
    for one in bytes.chunks_exact(OBSERVATION_BYTES) {
        let number = |at: usize| {
            let bytes = one[at..at + 8].try_into().expect("eight of seventeen");
            i64::from_le_bytes(bytes)
        };
        let (is_after, theirs, ours) = (one[0] & 1 == 1, number(1), number(9));
        if is_after {
            observed.not_after(theirs, ours);
        } else {
            observed.not_before(theirs, ours);
        }
        all.push((is_after, theirs, ours));
    }
    let Ok(lines) = observed.lines(0) else { return };
    let fits = |reading: i64| (-(1 << 61)..1 << 61).contains(&reading);
    for (is_after, theirs, ours) in all {
        let (least, most) = lines.at(theirs);
        assert!(least <= most, "{least} {most} at {theirs}");
        if fits(theirs) && fits(ours) {
            assert!(if is_after { most <= ours } else { ours <= least }, "{ours} at {theirs}");
        }
    }
    let (slow, fast) = lines.pace_ppb();
    assert!(slow <= fast && slow >= -1_000_000 && fast <= 1_000_000, "{slow} {fast}");
}

/// Two clocks as they are: with an offset, a drift, and ways of other lengths.
pub fn good() -> Vec<Vec<u8>> {
    let observation = |is_after: bool, theirs: i64, ours: i64| {
        let mut bytes = vec![u8::from(is_after)];
        bytes.extend(theirs.to_le_bytes());
        bytes.extend(ours.to_le_bytes());
        bytes
    };
    let exchange = |n: i64| {
        let theirs = 1_700_000_000_000_000_000 + n * 1_000_000_000;
        let ours = theirs - 5_000_000_000 + n * 20_000;
        let way = 10_000 + n * n % 7 * 3_000;
        [observation(false, theirs, ours - way), observation(true, theirs, ours + way)].concat()
    };
    let few: Vec<u8> = (0..3).flat_map(exchange).collect();
    let many: Vec<u8> = (0..40).flat_map(exchange).collect();
    vec![few, many, observation(true, i64::MIN, i64::MAX)]
}
