//! Node ports of services: a port that a request names is reserved, and others are chosen.
//!
//! This comes before validation, so that a response about a port that is not available has no other causes.

use std::collections::{HashMap, HashSet};

use klient_core::{Status, StatusCause, StatusReason};
use serde_json::{Value, json};

use super::invalid;
use crate::{Result, builtin::Writing, causes::Causes};

/// Allocates the node ports of a service, and the port of its health checks.
///
/// # Errors
///
/// Returns an error if a port that the service names is out of the range or belongs to another service.
pub(super) fn allocate(writing: Writing<'_>, name: &str, spec: &mut Value, old: Option<&Value>) -> Result<()> {
    let needs_ports = matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if !needs_ports {
        return Ok(());
    }
    if let Some(old) = old {
        keep(spec, old);
    }
    let mut free = Free { writing, taken: None };
    match old {
        Some(old) => update(name, spec, old, &mut free)?,
        None => create(name, spec, &mut free)?,
    }
    if is_checked(spec) && !old.is_some_and(is_checked) {
        health_check(spec, &mut free)?;
    }
    Ok(())
}

/// Copies the ports that the stored service has, and the request leaves out. Ports are the same if they have the same name.
fn keep(spec: &mut Value, old: &Value) {
    if chooses(spec) && chooses(old) {
        let before: HashSet<i64> = ports(old).iter().map(node_port).collect();
        let used: HashSet<i64> = ports(spec).iter().map(node_port).filter(|number| before.contains(number)).collect();
        let of_name = |name: &Value| ports(old).iter().rfind(|port| port["name"] == *name).map_or(0, node_port);
        for port in spec["ports"].as_array_mut().into_iter().flatten().filter(|port| node_port(port) == 0) {
            let number = of_name(&port["name"]);
            if number != 0 && !used.contains(&number) {
                port["nodePort"] = json!(number);
            }
        }
    }
    if is_checked(spec) && is_checked(old) && number(spec, CHECK) == 0 {
        spec[CHECK] = old[CHECK].clone();
    }
}

fn create(name: &str, spec: &mut Value, free: &mut Free<'_>) -> Result<()> {
    let chooses = chooses(spec);
    // One number serves several protocols of the same port.
    let mut of_port: HashMap<i64, i64> = HashMap::new();
    for index in 0..ports(spec).len() {
        let all = ports(spec);
        let (port, wanted) = (number(&all[index], "port"), node_port(&all[index]));
        if wanted == 0 && !chooses {
            continue;
        }
        let found = match of_port.get(&port) {
            None => {
                let same = |other: &&Value| number(other, "port") == port && node_port(other) != 0;
                let number = match all.iter().find(same).map(node_port) {
                    Some(requested) => free.reserve(name, index, requested)?,
                    None => free.next()?,
                };
                of_port.insert(port, number);
                number
            }
            Some(number) if wanted == 0 => *number,
            Some(number) if wanted == *number => continue,
            Some(_) => free.reserve(name, index, wanted)?,
        };
        spec["ports"][index]["nodePort"] = json!(found);
    }
    Ok(())
}

fn update(name: &str, spec: &mut Value, old: &Value, free: &mut Free<'_>) -> Result<()> {
    let chooses = chooses(spec);
    let mut reserved: HashSet<i64> = ports(old).iter().map(node_port).collect();
    let mut seen: Vec<(Value, i64)> = Vec::new();
    for index in 0..ports(spec).len() {
        let port = &ports(spec)[index];
        let (protocol, wanted) = (port["protocol"].clone(), node_port(port));
        let found = match wanted {
            0 if !chooses => continue,
            0 => free.next()?,
            wanted if reserved.contains(&wanted) => wanted,
            wanted => free.reserve(name, index, wanted)?,
        };
        reserved.insert(found);
        let pair = (protocol, found);
        if seen.contains(&pair) {
            let message = format!("duplicate nodePort: {{{} {found}}}", pair.0.as_str().unwrap_or_default());
            return Err(Box::new(Status::failure(StatusReason::Unknown, 500, message)));
        }
        seen.push(pair);
        spec["ports"][index]["nodePort"] = json!(found);
    }
    Ok(())
}

fn health_check(spec: &mut Value, free: &mut Free<'_>) -> Result<()> {
    spec[CHECK] = match number(spec, CHECK) {
        0 => json!(free.next()?),
        wanted => match free.take(wanted) {
            Ok(()) => json!(wanted),
            Err(why) => {
                let message = format!("failed to allocate requested HealthCheck NodePort {wanted}: {why}");
                return Err(Box::new(Status::internal_error(message)));
            }
        },
    };
    Ok(())
}

/// The numbers that no service has. They are looked up when the first one is needed.
struct Free<'a> {
    writing: Writing<'a>,
    taken: Option<HashSet<i64>>,
}

impl Free<'_> {
    fn taken(&mut self) -> &mut HashSet<i64> {
        let core = self.writing.core;
        self.taken.get_or_insert_with(|| {
            let services = core.store.list("services", "").objects;
            let mut taken = HashSet::new();
            for service in &services {
                let service = service.value();
                taken.extend(ports(&service["spec"]).iter().map(node_port));
                taken.insert(number(&service["spec"], CHECK));
            }
            taken
        })
    }

    /// Takes a number, or returns why it is not available.
    fn take(&mut self, number: i64) -> std::result::Result<(), String> {
        // The real server checks no range in a dry run.
        if !self.writing.dry_run && !(FIRST..FIRST + COUNT).contains(&number) {
            let last = FIRST + COUNT - 1;
            return Err(format!("provided port is not in the valid range. The range of valid ports is {FIRST}-{last}"));
        }
        if self.taken().insert(number) { Ok(()) } else { Err("provided port is already allocated".to_owned()) }
    }

    /// Takes the number of a port of a request.
    fn reserve(&mut self, name: &str, index: usize, number: i64) -> Result<i64> {
        self.take(number).map_err(|why| {
            let mut causes = Causes::new();
            causes.add(|| StatusCause::invalid(format!("spec.ports[{index}].nodePort"), number, &why));
            invalid(name, causes)
        })?;
        Ok(number)
    }

    /// Takes any number.
    fn next(&mut self) -> Result<i64> {
        let first = (self.writing.core.random() % (COUNT - STATIC).cast_unsigned()).cast_signed();
        let taken = self.taken();
        let dynamic = (0..COUNT - STATIC).map(|step| FIRST + STATIC + (first + step) % (COUNT - STATIC));
        let number = dynamic.chain(FIRST..FIRST + STATIC).find(|number| !taken.contains(number));
        let number =
            number.ok_or_else(|| Box::new(Status::internal_error("failed to allocate a nodePort: range is full")))?;
        taken.insert(number);
        Ok(number)
    }
}

/// Returns whether a service gets ports that its request does not name.
fn chooses(spec: &Value) -> bool {
    spec["type"] == "NodePort"
        || (spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != json!(false))
}

/// Returns whether the balancer of a service checks on which nodes its pods run.
pub(super) fn is_checked(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

fn ports(spec: &Value) -> &[Value] {
    spec["ports"].as_array().map_or(&[], Vec::as_slice)
}

fn node_port(port: &Value) -> i64 {
    number(port, "nodePort")
}

fn number(object: &Value, name: &str) -> i64 {
    object[name].as_i64().unwrap_or_default()
}

/// The port of health checks.
const CHECK: &str = "healthCheckNodePort";
/// The first node port.
const FIRST: i64 = 30_000;
/// The number of node ports.
const COUNT: i64 = 2_768;
/// The number of ports at the start of the range that are chosen last, so that requests can name them.
const STATIC: i64 = 86;
