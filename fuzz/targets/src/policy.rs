// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Policy files, and Genode's configurations as policies.

use lateralis_recorder::policy::{
    Common, Diagnostic, Facts, Policies, from_genode, parse, request,
};
use lateralis_ring::RingMode;

/// Besides not panicking: the position of a fault is inside the text, valid policies can be
/// applied, and the request to programs stays one line for each policy.
pub fn check_policies(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse("p.toml", text) {
        Ok(policies) => apply(&policies),
        Err(faults) => {
            assert!(!faults.is_empty());
            faults.iter().for_each(|fault| inside(fault, text));
        }
    }
}

/// What is translated is a good policy file.
pub fn check_genode(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match from_genode("config", text) {
        Ok(said) => match parse("p.toml", &said.toml) {
            Ok(policies) => apply(&policies),
            // Genode needs no label that is unlike all others, and may have more of them.
            Err(faults) => assert!(
                faults.iter().all(|one| one.what.contains("reached") || one.what.contains("many")),
                "{faults:?}: {}",
                said.toml
            ),
        },
        Err(fault) => inside(&fault, text),
    }
}

fn inside(fault: &Diagnostic, text: &str) {
    assert!(fault.line <= text.matches('\n').count() + 1, "{fault}");
    assert!(!fault.to_string().is_empty());
}

fn apply(policies: &Policies) {
    let facts = Facts { program: "/usr/bin/a".into(), ..Facts::default() };
    let decided = policies.decide(&facts);
    assert!(decided.is_none_or(|(number, policy)| policies.list[number] == *policy));
    let common = Common {
        session: 1,
        recorder_pid: 1,
        buffer_bytes: 1 << 20,
        packet_bytes: 1 << 16,
        cap_bytes: 1 << 28,
        mode: RingMode::Discard,
        waits: false,
        launched: false,
    };
    let wanted = policies.wanted(&facts);
    let about: Vec<_> = policies.about(&facts).map(|(_, policy)| policy).collect();
    let is_about_threads = about.iter().any(|policy| !policy.threads.is_empty());
    if let Some(wanted) = wanted {
        let rules = if is_about_threads { about.len() } else { 0 };
        assert_eq!(wanted.threads.len(), rules);
        // Nothing that it says of the program as a whole is without effect.
        for choice in about.iter().filter_map(|policy| policy.choice.as_ref()) {
            assert!(choice.output.is_none() || choice.output == wanted.choice.output);
            assert!(choice.live.is_none() || choice.live == wanted.choice.live);
            assert!(choice.mode.is_none() || choice.mode == wanted.choice.mode);
            let bytes = choice.buffer_bytes;
            assert!(bytes.is_none() || bytes == wanted.choice.buffer_bytes);
        }
    }
    if let Ok(text) = request(policies, &common) {
        assert_eq!(text.lines().count(), policies.list.len());
    }
}

/// A file with most of what there is.
pub fn good_policies() -> Vec<Vec<u8>> {
    let all = "[[policy]]\nname = \"web\"\nprogram = \"nginx\"\ncommand_pattern = \"*80*\"\n\
        label_suffix = \"bash -> x\"\ncgroup_prefix = '/user'\nuser = 1000\n\
        enable = [\"http\", \"db:Q*\"]\ndisable = \"http:B\"\nwith = [\"mutex\"]\nbuffer = \"1M\"\n\
        packet = 8192\nmode = \"overwrite\"\n[[policy]]\nprogram_prefix = \"\"\"a\"\"\"\n\
        record = false\n";
    let threads = "[[policy]]\nprogram = \"a\"\nthread = \"ep\"\nenable = \"x:Y\"\nfilter = \"x:Y: n == 1\"\n\
        output = \"beside\"\nlive = \"127.0.0.1:0\"\n[[policy]]\nprogram_prefix = \"a\"\n\
        thread_pattern = \"w*\"\nrecord = false\n[[policy]]\nprogram_suffix = \"a\"\noutput = \"beside\"\n\
        live = \"127.0.0.1:0\"\n";
    vec![all.into(), threads.into(), b"[[policy]]\n".to_vec()]
}

/// The example of seed 004.
pub fn good_genode() -> Vec<Vec<u8>> {
    let seed = "<config period_ms=\"5000\" enable=\"yes\" default_buffer=\"64K\"><vfs><fs/></vfs>\
        <policy label_suffix=\"nic\" thread=\"ep\" buffer=\"1M\" policy=\"pcapng\"><pcapng/></policy>\
        <policy label=\"init -> a\" policy=\"ctf0\"><ctf/></policy><default-policy/></config>";
    vec![seed.into()]
}
