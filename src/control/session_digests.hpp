// Digests of what was asked of the registry: the same request has the same digest, and a key that
// comes with another one is refused.
//
// Those of a step are computed from the record that the step would write; times that the registry
// stamps itself are no part of them.
#pragma once
#include <glove/adapters/guest_channel.hpp>
#include <glove/control/session_record.hpp>
#include <glove/control/session_registry.hpp>
#include <glove/wire/digest.hpp>

namespace glove::control {

// The part of a record that its digest and those of the steps share.
void put_cgroup(wire::digest_encoder& out, const std::optional<cgroup_identity>& what);
void put_filesystem(wire::digest_encoder& out, const std::optional<filesystem_identity>& what);
void put_managed(wire::digest_encoder& out, const std::optional<managed_runtime_identity>& what);
void put_process(wire::digest_encoder& out, const process_identity& what);

[[nodiscard]] auto start_digest(const start_authorization& what) -> result<std::string>;
// Of the step that `next`, which already holds what the step brings, is about to take.
[[nodiscard]] auto step_digest(const session_record& next) -> result<std::string>;

[[nodiscard]] auto body_of(const observation_intent& what) -> adapters::guest_body;
[[nodiscard]] auto intent_digest(const adapters::guest_body& body) -> result<std::string>;
[[nodiscard]] auto enqueue_digest(const session_record& session, const observation_intent& what)
    -> result<std::string>;
[[nodiscard]] auto disposition_digest(const session_record& session, const observation_intent& what)
    -> result<std::string>;
// The key under which the registry files it.
[[nodiscard]] auto intent_key(const observation_intent& what, std::string_view request_digest)
    -> std::string;

} // namespace glove::control
