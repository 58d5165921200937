// Which requests were carried out, for those that leave no record of their own: keystrokes,
// signals, sizes. A key that comes again with the same request gets the answer of the first time.
//
// Guarantees: two requests with one key never run at the same time; memory is bounded, because each
// subject, mostly a session, keeps its newest keys and the subject that was used longest ago makes
// room for a new one. What is running is never forgotten. What cannot be undone is not kept here:
// it is on record in a journal.
//
// Safe for use by several threads.
#pragma once
#include <cstddef>
#include <functional>
#include <glove/control/answer.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace glove::control {

struct idempotency_bounds {
    std::size_t subjects = 1024;
    std::size_t keys = 128;         // of one subject
    std::size_t bytes = 16UL << 20; // of all keys, requests and answers
};

class idempotency_table {
public:
    explicit idempotency_table(idempotency_bounds most = {});
    ~idempotency_table();

    // `request` says what is asked for, in a form that the same request always has, and is not
    // empty. A failure is not kept, and leaves no trace. idempotency_conflict: the key was used for
    // another request. idempotency_capacity: as many requests of the subject as there may be are
    // running now.
    [[nodiscard]] auto once(std::string_view subject, std::string_view key,
                            std::string_view request,
                            const std::function<answer<std::string>()>& act) -> answer<std::string>;
    void forget(std::string_view subject);
    [[nodiscard]] auto kept() const -> std::size_t; // keys, of all subjects

private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace glove::control
