//! Where the machine sends what: its IPv4 routes.

use std::io;
use std::net::Ipv4Addr;

/// The kernel's own table (proc(5)): addresses in hex, in the byte order of the machine.
const TABLE: &str = "/proc/net/route";

/// A route to a network; the default route is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    network: u32,
    mask: u32,
}

impl Route {
    /// Whether the route and the network of `bits` around `address` have an address in common.
    #[must_use]
    pub fn overlaps(&self, address: Ipv4Addr, bits: u32) -> bool {
        let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
        let both = self.mask & mask;
        u32::from(address) & both == self.network & both
    }
}

/// Every route to a network.
///
/// # Errors
///
/// Where the table could not be read.
pub fn all() -> io::Result<Vec<Route>> {
    Ok(parse(&std::fs::read_to_string(TABLE)?))
}

fn parse(table: &str) -> Vec<Route> {
    // Written as the machine's own number for bytes that lie in the order of the network.
    let number = |field: Option<&&str>| Some(u32::from_be(u32::from_str_radix(field?, 16).ok()?));
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let routes =
        lines.filter_map(|fields| Some(Route { network: number(fields.get(1))?, mask: number(fields.get(7))? }));
    routes.filter(|route| route.mask != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn networks_that_share_an_address_overlap_and_the_default_route_is_none() {
        let routes = parse(TABLE);
        assert_eq!(routes.len(), 1);
        assert!(routes[0].overlaps(Ipv4Addr::new(172, 17, 44, 1), 24));
        assert!(routes[0].overlaps(Ipv4Addr::new(172, 0, 0, 1), 8));
        assert!(!routes[0].overlaps(Ipv4Addr::new(172, 18, 0, 1), 24));
    }
}
