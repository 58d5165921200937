// A disk in memory under journals: it fails at the n-th operation, writes short, and loses power.
//
// Guarantees: what was synced survives; of what was not, the case chooses how much, for contents
// and for names on their own. A storage is a process that has the file open; the disk outlives it.
#pragma once
#include <algorithm>
#include <array>
#include <cerrno>
#include <glove/journal/storage.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace glove::test {

// Of what was not synced.
enum class survives : std::uint8_t { nothing, one_byte, half, all_but_one_byte, everything };
inline constexpr std::array all_survivals{survives::nothing, survives::one_byte, survives::half,
                                          survives::all_but_one_byte, survives::everything};
// What an operation that reports an error has done.
enum class effect : std::uint8_t { none, part, whole };
inline constexpr std::array all_effects{effect::none, effect::part, effect::whole};
enum class then : std::uint8_t { recovers, stays_broken };

struct fault_plan {
    std::size_t at = 0; // the operation that fails, from 1; 0: none
    effect does = effect::none;
    then after = then::recovers;
};

class failing_disk {
public:
    // What it holds, what of that is on the disk for sure, and what it held before its last change.
    // Files of many megabytes grow by small records: only what has changed is copied.
    class inode {
    public:
        explicit inode(std::string content = {})
            : now_{std::move(content)}, synced_size_{now_.size()} {}

        [[nodiscard]] auto now() const -> const std::string& { return now_; }
        void append(std::string_view bytes) {
            before_.reset();
            before_size_ = now_.size();
            now_ += bytes;
            changed_ = true;
        }
        void replace(std::string content) {
            if (!synced_) synced_ = now_.substr(0, synced_size_);
            before_ = std::exchange(now_, std::move(content));
            changed_ = true;
        }
        void sync() {
            changed_ = false;
            synced_size_ = now_.size();
            synced_.reset();
            before_.reset();
        }
        void lose_power(survives what) {
            now_ = remains(what);
            sync();
        }

    private:
        [[nodiscard]] auto remains(survives what) const -> std::string {
            if (what == survives::everything || !changed_) return now_;
            if (what == survives::nothing) return synced_ ? *synced_ : now_.substr(0, synced_size_);
            if (before_) return *before_; // a cut is done or not
            const auto more = now_.size() - before_size_;
            const auto kept = what == survives::one_byte ? std::min<std::size_t>(more, 1)
                              : what == survives::half   ? more / 2
                                                         : more - std::min<std::size_t>(more, 1);
            return now_.substr(0, before_size_ + kept);
        }

        std::string now_;
        bool changed_ = false;              // since the last sync
        std::size_t synced_size_;           // so much of what it holds, unless
        std::optional<std::string> synced_; // more than its end has changed
        std::size_t before_size_ = 0;       // the same, of the last change
        std::optional<std::string> before_;
    };
    using file = std::shared_ptr<inode>;
    using names = std::map<std::string, file>;

    void plan(fault_plan next) {
        plan_ = next;
        done_ = 0;
        fired_ = false;
    }
    [[nodiscard]] auto fired() const -> bool { return fired_; }
    [[nodiscard]] auto operations() const -> std::size_t { return done_; }

    // How many states the names may be in after a loss of power.
    [[nodiscard]] auto name_states() const -> std::size_t { return states_.size(); }
    void lose_power(std::size_t state, survives what) {
        auto kept = states_[std::min(state, states_.size() - 1)];
        states_ = {std::move(kept)};
        for (auto& [name, what_is] : states_.front()) {
            // The witness is one sector: whole or not at all.
            const bool whole = name == "head" && what != survives::nothing;
            what_is->lose_power(whole ? survives::everything : what);
        }
        plan_ = {};
    }

    [[nodiscard]] auto look(const std::string& name) const -> file {
        const auto at = states_.back().find(name);
        return at == states_.back().end() ? nullptr : at->second;
    }
    [[nodiscard]] auto content(const std::string& name = "file") const -> std::string {
        const auto at = look(name);
        return at == nullptr ? std::string{} : at->now();
    }
    // A file that is there for sure.
    void put(const std::string& name, std::string content) {
        const auto made = std::make_shared<inode>(std::move(content));
        for (auto& state : states_) state[name] = made;
    }
    void remove(const std::string& name) {
        for (auto& state : states_) state.erase(name);
    }

private:
    friend class failing_storage;
    // What the operation may do of its effect: nothing (0), a part (1), all (2); an error or not.
    struct verdict {
        effect does = effect::whole;
        bool ok = true;
    };
    [[nodiscard]] auto judge() -> verdict {
        ++done_;
        if (plan_.at == 0 || done_ < plan_.at) return {};
        if (done_ > plan_.at)
            return plan_.after == then::recovers ? verdict{} : verdict{effect::none, false};
        fired_ = true;
        return {plan_.does, false};
    }
    void rename(names to) { states_.push_back(std::move(to)); }

    std::vector<names> states_{names{}}; // since the last sync of names
    fault_plan plan_;
    std::size_t done_ = 0;
    bool fired_ = false;
};

class failing_storage final : public journal::storage {
public:
    explicit failing_storage(failing_disk& disk) : disk_{disk}, file_{disk.look("file")} {
        // A process that died may have left a second name of the file, or a next one.
        if (file_ != nullptr && disk.look("old") == file_)
            change_names([](auto& n) { n.erase("old"); });
    }

    auto size() -> result<std::optional<std::uint64_t>> override {
        if (!disk_.judge().ok) return broken("size");
        if (file_ == nullptr) return std::nullopt;
        return file_->now().size();
    }
    auto read(std::uint64_t at, std::span<char> out) -> result<std::size_t> override {
        if (!disk_.judge().ok) return broken("read");
        if (file_ == nullptr || at >= file_->now().size()) return std::size_t{0};
        return file_->now().copy(out.data(), out.size(), static_cast<std::size_t>(at));
    }
    auto check() -> result<> override {
        if (!disk_.judge().ok) return broken("check");
        if (disk_.look("file") != file_) return fail(errc::conflict, "disk.check");
        return {};
    }
    auto append(std::string_view bytes) -> result<> override { return add(file_, bytes); }
    auto truncate(std::uint64_t size) -> result<> override {
        return doing("truncate", [&] {
            file_->replace(file_->now().substr(0, static_cast<std::size_t>(size)));
        });
    }
    auto sync() -> result<> override {
        return doing("sync", [&] { file_->sync(); });
    }
    auto start_next() -> result<> override {
        return doing("start_next", [&] {
            next_ = std::make_shared<failing_disk::inode>();
            change_names([&](auto& names) { names["next"] = next_; });
        });
    }
    auto append_next(std::string_view bytes) -> result<> override { return add(next_, bytes); }
    auto sync_next() -> result<> override {
        return doing("sync_next", [&] { next_->sync(); });
    }
    auto keep_present() -> result<> override {
        return doing("keep_present",
                     [&] { change_names([&](auto& names) { names["old"] = file_; }); });
    }
    auto adopt_next() -> result<> override {
        return doing("adopt_next", [&] {
            change_names([&](auto& names) {
                names["file"] = next_;
                names.erase("next");
            });
            file_ = std::move(next_);
        });
    }
    auto sync_names() -> result<> override {
        return doing("sync_names",
                     [&] { disk_.states_.erase(disk_.states_.begin(), disk_.states_.end() - 1); });
    }
    auto witness() -> result<std::string> override {
        if (!disk_.judge().ok) return broken("witness");
        return disk_.content("head");
    }
    auto set_witness(std::string_view text) -> result<> override {
        return doing("set_witness", [&] {
            if (const auto there = disk_.look("head")) there->replace(std::string{text});
            else disk_.put("head", std::string{text});
        });
    }

private:
    static auto broken(std::string what) -> std::unexpected<error> {
        return fail_os("disk.fault", EIO, std::move(what));
    }
    template<class Change> auto doing(const char* name, Change change) -> result<> {
        const auto verdict = disk_.judge();
        if (verdict.does == effect::whole) change();
        return verdict.ok ? result<>{} : broken(name);
    }
    auto add(const failing_disk::file& to, std::string_view bytes) -> result<> {
        const auto verdict = disk_.judge();
        const auto taken = verdict.does == effect::whole  ? bytes.size()
                           : verdict.does == effect::part ? bytes.size() / 2
                                                          : 0;
        if (taken > 0) to->append(bytes.substr(0, taken));
        return verdict.ok ? result<>{} : broken("append");
    }
    template<class Change> void change_names(Change change) {
        auto names = disk_.states_.back();
        change(names);
        disk_.rename(std::move(names));
    }

    failing_disk& disk_;
    failing_disk::file file_, next_;
};

} // namespace glove::test
