// A journal's bytes in memory, for tests of many records. It keeps everything and never fails.
#pragma once
#include <functional>
#include <glove/journal/storage.hpp>
#include <string>

namespace glove::test {

struct memory_files {
    std::optional<std::string> file;
    std::string next, head;
    std::function<void()> on_sync; // to be slow in
};

class memory_storage final : public journal::storage {
public:
    explicit memory_storage(memory_files& of) : files_{of} {}
    auto size() -> result<std::optional<std::uint64_t>> override {
        if (!files_.file) return std::nullopt;
        return files_.file->size();
    }
    auto read(std::uint64_t at, std::span<char> out) -> result<std::size_t> override {
        if (!files_.file || at >= files_.file->size()) return std::size_t{0};
        return files_.file->copy(out.data(), out.size(), static_cast<std::size_t>(at));
    }
    auto check() -> result<> override { return {}; }
    auto append(std::string_view bytes) -> result<> override {
        files_.file.value() += bytes;
        return {};
    }
    auto truncate(std::uint64_t size) -> result<> override {
        files_.file.value().resize(static_cast<std::size_t>(size));
        return {};
    }
    auto sync() -> result<> override {
        if (files_.on_sync) files_.on_sync();
        return {};
    }
    auto start_next() -> result<> override {
        files_.next.clear();
        return {};
    }
    auto append_next(std::string_view bytes) -> result<> override {
        files_.next += bytes;
        return {};
    }
    auto sync_next() -> result<> override { return {}; }
    auto keep_present() -> result<> override { return {}; }
    auto adopt_next() -> result<> override {
        files_.file = std::move(files_.next);
        return {};
    }
    auto sync_names() -> result<> override { return {}; }
    auto witness() -> result<std::string> override { return files_.head; }
    auto set_witness(std::string_view text) -> result<> override {
        files_.head = text;
        return {};
    }

private:
    memory_files& files_;
};

} // namespace glove::test
