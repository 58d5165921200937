// Least recently used first out, but never a request that runs: two with one key are carried out
// once and get one result. What was kept makes room only for what succeeds.
#include <algorithm>
#include <condition_variable>
#include <glove/control/idempotency.hpp>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace glove::control {

namespace {

struct entry {
    std::string key;
    std::string request;
    std::optional<std::string> result; // nothing while it runs
    bool failed = false;               // it is kept no more, and who waits tries again
    [[nodiscard]] auto running() const -> bool { return !result && !failed; }
    [[nodiscard]] auto bytes() const -> std::size_t {
        return key.size() + request.size() + (result ? result->size() : 0);
    }
};
using kept_entry = std::shared_ptr<entry>;

struct subject_keys {
    std::list<kept_entry> entries; // the one that was used last is first
    [[nodiscard]] auto running() const -> bool {
        return std::ranges::any_of(entries, [](const auto& e) { return e->running(); });
    }
};

} // namespace

struct idempotency_table::state {
    explicit state(idempotency_bounds bounds) : most{bounds} {}

    // Null when the key is new.
    [[nodiscard]] auto find(subject_keys& of, std::string_view key) -> kept_entry {
        const auto at = std::ranges::find(of.entries, key, [](const auto& e) { return e->key; });
        if (at == of.entries.end()) return nullptr;
        of.entries.splice(of.entries.begin(), of.entries, at);
        return *at;
    }

    // Null when everything that could make room is running. While it runs itself, a new one is
    // above the bound.
    [[nodiscard]] auto subject(std::string_view name) -> subject_keys* {
        if (const auto at = subjects.find(name); at != subjects.end()) {
            at->second.used = ++clock;
            return &at->second.keys;
        }
        if (subjects.size() >= most.subjects && oldest({}) == subjects.end()) return nullptr;
        auto& made = subjects[std::string{name}];
        made.used = ++clock;
        return &made.keys;
    }

    [[nodiscard]] auto add(subject_keys& to, std::string_view key, std::string_view request)
        -> kept_entry {
        if (to.entries.size() >= most.keys) {
            const auto oldest = std::find_if(to.entries.rbegin(), to.entries.rend(),
                                             [](const auto& e) { return !e->running(); });
            if (oldest == to.entries.rend()) return nullptr;
            to.entries.erase(std::next(oldest).base());
        }
        to.entries.push_front(
            std::make_shared<entry>(entry{std::string{key}, std::string{request}, {}, false}));
        return to.entries.front();
    }

    void drop(std::string_view name, const kept_entry& what) {
        const auto at = subjects.find(name);
        if (at == subjects.end()) return;
        std::erase(at->second.keys.entries, what);
        if (at->second.keys.entries.empty()) subjects.erase(at);
    }

    [[nodiscard]] auto bytes() const -> std::size_t {
        std::size_t out = 0;
        for (const auto& [name, of] : subjects)
            for (const auto& one : of.keys.entries) out += one->bytes();
        return out;
    }
    // The subjects that were used longest ago go first, and of the last one its oldest keys.
    void keep_bound(std::string_view newest) {
        while (subjects.size() > most.subjects && drop_oldest(newest)) {
        }
        while (bytes() > most.bytes) {
            if (subjects.size() > 1 && drop_oldest(newest)) continue;
            const auto at = subjects.find(newest);
            if (at == subjects.end()) return;
            auto& entries = at->second.keys.entries;
            const auto old = std::find_if(entries.rbegin(), entries.rend(),
                                          [](const auto& e) { return !e->running(); });
            if (old == entries.rend()) return;
            entries.erase(std::next(old).base());
        }
    }

    struct kept_subject {
        subject_keys keys;
        std::uint64_t used = 0;
    };
    using kept_subjects = std::map<std::string, kept_subject, std::less<>>;
    [[nodiscard]] auto oldest(std::optional<std::string_view> but) -> kept_subjects::iterator {
        auto out = subjects.end();
        for (auto at = subjects.begin(); at != subjects.end(); ++at)
            if (at->first != but && !at->second.keys.running() &&
                (out == subjects.end() || at->second.used < out->second.used))
                out = at;
        return out;
    }
    [[nodiscard]] auto drop_oldest(std::string_view but) -> bool {
        const auto at = oldest(but);
        if (at == subjects.end()) return false;
        subjects.erase(at);
        return true;
    }

    const idempotency_bounds most;
    std::mutex lock;
    std::condition_variable changed;
    kept_subjects subjects;
    std::uint64_t clock = 0;
};

idempotency_table::idempotency_table(idempotency_bounds most)
    : state_{std::make_unique<state>(most)} {}
idempotency_table::~idempotency_table() = default;

auto idempotency_table::once(std::string_view subject, std::string_view key,
                             std::string_view request,
                             const std::function<answer<std::string>()>& act)
    -> answer<std::string> {
    if (request.empty())
        return refuse(error_code::idempotency_capacity, errc::invalid_input, "key.meaning");
    std::unique_lock held{state_->lock};
    kept_entry mine;
    while (!mine) {
        auto* keys = state_->subject(subject);
        if (keys == nullptr)
            return refuse(error_code::idempotency_capacity, errc::limit_exceeded, "key.subjects");
        if (auto known = state_->find(*keys, key)) {
            if (known->request != request)
                return refuse(error_code::idempotency_conflict, errc::conflict, "key.request");
            state_->changed.wait(held, [&] { return !known->running(); });
            if (known->result) return *known->result;
        } else {
            mine = state_->add(*keys, key, request);
            if (!mine)
                return refuse(error_code::idempotency_capacity, errc::limit_exceeded, "key.keys");
        }
    }
    // Whatever happens, those who wait go on.
    struct settles {
        state& of;
        std::string_view subject;
        const kept_entry& what;
        std::unique_lock<std::mutex>& held;
        ~settles() {
            if (!held.owns_lock()) held.lock();
            what->failed = !what->result;
            if (what->failed) of.drop(subject, what);
            of.changed.notify_all();
        }
    } const settle{*state_, subject, mine, held};
    held.unlock();
    auto out = act();
    held.lock();
    if (out) {
        mine->result = *out;
        state_->keep_bound(subject);
    }
    return out;
}

void idempotency_table::forget(std::string_view subject) {
    const std::lock_guard held{state_->lock};
    const auto at = state_->subjects.find(subject);
    if (at == state_->subjects.end()) return;
    std::erase_if(at->second.keys.entries, [](const auto& e) { return !e->running(); });
    if (at->second.keys.entries.empty()) state_->subjects.erase(at);
}

auto idempotency_table::kept() const -> std::size_t {
    const std::lock_guard held{state_->lock};
    std::size_t out = 0;
    for (const auto& [name, what] : state_->subjects) out += what.keys.entries.size();
    return out;
}

} // namespace glove::control
