//! What each core counts of its exchanges. Written by its core alone, read from anywhere.

use baton_runtime::Counter;

/// Defines the counters once: the field, its meaning, and the name it is reported under.
macro_rules! counters {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// The counters of one core.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct Counters {
            $($(#[doc = $doc])* pub $name: Counter,)*
        }

        impl Counters {
            /// Every counter's name and meaning, in the order of their definition.
            pub(crate) const MEANINGS: &[(&str, &str)] =
                &[$((stringify!($name), concat!($($doc),*)),)*];

            /// Every counter's name and value, in the order of their definition.
            pub fn read(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.read()),)*]
            }
        }
    };
}

counters! {
    /// Requests whose head was accepted.
    requests,
    /// Final answers to clients with a 1xx status (101).
    answers_1xx,
    /// Answers with a 2xx status.
    answers_2xx,
    /// Answers with a 3xx status.
    answers_3xx,
    /// Answers with a 4xx status, ours included.
    answers_4xx,
    /// Answers with a 5xx status, ours included.
    answers_5xx,
    /// Request body bytes sent to endpoints, without their framing.
    request_body_bytes,
    /// Answer body bytes sent to clients, without their framing.
    answer_body_bytes,
    /// Connections opened to endpoints.
    upstream_connects,
    /// Requests sent on a connection that had been used before.
    upstream_reuses,
    /// Requests tried a second time.
    upstream_retries,
    /// Connections turned into tunnels.
    tunnels,
    /// Clients refused since their address holds its limit of connections.
    clients_over_ip_limit,
    /// Requests that no route takes.
    no_route,
    /// Requests whose method no route of their path takes.
    method_not_allowed,
    /// Connections without the PROXY protocol header that was due.
    proxy_protocol_refused,
    /// Requests refused for their head.
    request_head_refused,
    /// Requests refused for a target over its limit.
    request_target_over_limit,
    /// Requests refused for a head or a number of fields over the limit.
    request_head_over_limit,
    /// Request heads that took too long.
    request_head_timeout,
    /// Requests refused for the coding of their body.
    request_body_refused,
    /// Request bodies that stalled.
    request_body_timeout,
    /// Request bodies over the limit.
    request_body_over_limit,
    /// Clients that left within an exchange.
    client_gone,
    /// Clients that did not take their answer.
    client_stalled,
    /// Connections to endpoints that failed.
    upstream_connect_failed,
    /// Connections to endpoints that took too long.
    upstream_connect_timeout,
    /// Endpoints that closed without an answer.
    upstream_no_answer,
    /// Endpoints that did not begin their answer in time.
    upstream_answer_timeout,
    /// Answers refused for their head or the coding of their body.
    upstream_answer_refused,
    /// Answers that broke off.
    upstream_answer_broken,
    /// Answers that stalled.
    upstream_answer_stalled,
    /// Answers with a status after which the request was sent once more.
    upstream_answer_status,
    /// Requests for which no endpoint could be used.
    upstream_no_endpoint,
    /// Requests refused since too many waited for a connection to their endpoint.
    upstream_queue_full,
    /// Requests that waited too long for a connection to their endpoint.
    upstream_queue_timeout,
    /// Requests not tried again since too many retries were under way.
    retry_budget_exhausted,
    /// Exchanges that found no descriptor or memory.
    out_of_resources,
    /// Log lines about peers' faults that were left out, being too many.
    log_lines_suppressed,
}

impl Counters {
    /// Counts a final answer by its status.
    pub(crate) fn answered(&self, status: u16) {
        match status {
            ..200 => self.answers_1xx.add(1),
            200..300 => self.answers_2xx.add(1),
            300..400 => self.answers_3xx.add(1),
            400..500 => self.answers_4xx.add(1),
            500.. => self.answers_5xx.add(1),
        }
    }
}
