//! What is refused although every block is right on its own.

use super::finding::{Code, Findings};
use super::names::HostName;
use super::schema::{Access, Compute, HostSpec};

/// Adds every refusal that concerns more than one block.
pub(super) fn check(spec: &HostSpec, findings: &mut Findings) {
    access(spec, findings);
    gateway(spec, findings);
}

fn access(spec: &HostSpec, findings: &mut Findings) {
    let Compute::ExistingHost { firewall, .. } = &spec.compute;
    match spec.access {
        Some(Access::SshDirect) if firewall.ssh != Some(true) => findings.fault(
            Code::Conflict,
            findings.place("access.provider"),
            "reaches the host by SSH from anywhere, and nothing opens port 22 (`access.provider`)",
            "write `ssh: true` under `compute.firewall`: opening port 22 to the world is a line its owner writes",
        ),
        Some(Access::SshDirect) | None => {}
    }
}

fn gateway(spec: &HostSpec, findings: &mut Findings) {
    let Some(gateway) = &spec.gateway else { return };
    let zones = &spec.dns.zones;
    let place = findings.place("gateway.host");
    let under = zones.iter().find(|zone| gateway.host.is_under(zone));
    let Some(zone) = under else {
        let listed: Vec<_> = zones.iter().map(|zone| format!("`{zone}`")).collect();
        let says =
            format!("puts the gateway at `{}`, which is not one label under a zone of `dns.zones`", gateway.host);
        findings.fault(Code::Conflict, place, says, format!("write one label under {}", listed.join(" or ")));
        return;
    };
    if HostName::parse(&format!("app.{zone}")).is_ok_and(|app| app == gateway.host) {
        let says = format!("puts the gateway at `app.{zone}`, the name of the web app");
        findings.fault(Code::Conflict, place, says, format!("write another label, as `api.{zone}`"));
    }
}
