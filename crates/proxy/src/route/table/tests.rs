//! Tables from short rows, and what is found in them.

use super::*;
use crate::config::{Action, FieldMatch, Route};
use crate::route::FieldList;

mod order;
mod search;
mod text;

/// A route from `name host[,host] path [METHOD,…] [field[=value]] [@listener]`; `-` for any host.
fn route(text: &str) -> Route {
    let mut words = text.split(' ');
    let name = words.next().expect("a name");
    let mut route = Route::to(name.into(), Default::default(), Default::default());
    route.action = Action::Proxy("u".into());
    let hosts = words.next().expect("a host");
    if hosts != "-" {
        let parse = |host| HostPattern::parse(host).expect("the row is a host");
        route.hosts = hosts.split(',').map(parse).collect();
    }
    route.path = PathPattern::parse(words.next().expect("a path")).expect("the row is a path");
    for word in words {
        if let Some(listener) = word.strip_prefix('@') {
            route.listeners.push(listener.into());
        } else if word.bytes().all(|b| b.is_ascii_uppercase() || b == b',') {
            route.methods = word.split(',').map(String::from).collect();
        } else {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word, None),
            };
            route.fields.push(FieldMatch { name: name.into(), value });
        }
    }
    route
}

fn config_of(routes: &[&str]) -> Config {
    let mut config = Config::defaults();
    for port in [1, 2] {
        config.add_listener(([127, 0, 0, 1], port).into()).expect("within bounds");
    }
    let mut second = config.listeners[0].clone();
    second.name = "second".into();
    second.addresses = vec![config.listeners[0].addresses.pop().expect("two were added")];
    config.listeners.push(second);
    config.routes = routes.iter().map(|text| route(text)).collect();
    config
}

struct Ask<'a> {
    listener: usize,
    method: &'a str,
    host: Option<&'a str>,
    path: &'a str,
    fields: &'a [(&'a str, &'a str)],
}

const ASK: Ask<'static> =
    Ask { listener: 0, method: "GET", host: Some("a.example"), path: "/", fields: &[] };

/// What is found, as the name of the route, `405 Allow`, `404`, or `400`.
fn find(config: &Config, ask: &Ask<'_>) -> String {
    let table = RouteTable::new(config);
    let Ok(resolved) = table.resolve(ask.path.as_bytes()) else { return "400".into() };
    let query = Query {
        listener: ask.listener,
        method: ask.method,
        host: ask.host.map(str::as_bytes),
        path: resolved.normal(),
        fields: &FieldList::new(ask.fields),
    };
    match table.find(&query) {
        Found::Route(index) => config.routes[index].name.clone(),
        Found::MethodNotAllowed(allow) => format!("405 {allow}"),
        Found::None => "404".into(),
    }
}
