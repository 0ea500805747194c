//! `/healthz` and `/metrics`, at the address `--listen` names: this machine alone by default.

use std::sync::Arc;

use async_nats::Client;
use async_nats::connection::State;
use axum::extract;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use super::metrics::Metrics;
use crate::state;

/// How long collecting may stand still before it counts as ill, in milliseconds: many rounds of one second.
const STILL_MAX: u64 = 30_000;
/// How long the broker may not have been compared before that counts as ill, in milliseconds: some comparisons of half a
/// minute, each of which may wait for answers.
const COMPARED_MAX: u64 = 150_000;

#[derive(Clone)]
struct Watched {
    client: Client,
    metrics: Arc<Metrics>,
}

#[derive(Serialize)]
struct Health {
    healthy: bool,
    broker: &'static str,
    collecting: bool,
    /// Whether the broker takes what it lacks.
    comparing: bool,
}

/// The pages.
pub(super) fn pages(client: Client, metrics: Arc<Metrics>) -> Router {
    let watched = Watched { client, metrics };
    Router::new().route("/healthz", get(healthz)).route("/metrics", get(figures)).with_state(watched)
}

async fn healthz(extract::State(watched): extract::State<Watched>) -> Response {
    let connected = matches!(watched.client.connection_state(), State::Connected);
    let collecting = state::now().saturating_sub(watched.metrics.last_round()) < STILL_MAX;
    let comparing = state::now().saturating_sub(watched.metrics.last_compared()) < COMPARED_MAX;
    let healthy = connected && collecting && comparing;
    let broker = if connected { "connected" } else { "not connected" };
    let status = if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Health { healthy, broker, collecting, comparing })).into_response()
}

async fn figures(extract::State(watched): extract::State<Watched>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    match watched.metrics.page(state::now()) {
        Ok(page) => (kind, page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
