// Where a journal's bytes are. Production is a locked file of the owner alone (file_storage.hpp);
// tests are a disk in memory that fails at any operation and loses power.
//
// There are a present file, a next file that may take its name, and a witness: a short text beside
// the file that says which record was the last to be acknowledged.
#pragma once
#include <cstddef>
#include <cstdint>
#include <glove/base/error.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace glove::journal {

class storage {
public:
    virtual ~storage() = default;

    // Nothing: there is no such file.
    [[nodiscard]] virtual auto size() -> result<std::optional<std::uint64_t>> = 0;
    // As many bytes as there are from `at` on, at most as many as fit.
    [[nodiscard]] virtual auto read(std::uint64_t at, std::span<char> out)
        -> result<std::size_t> = 0;
    // That the file is the one that was opened, as this object left it.
    [[nodiscard]] virtual auto check() -> result<> = 0;
    // At the end. An error may leave a part of the bytes.
    [[nodiscard]] virtual auto append(std::string_view bytes) -> result<> = 0;
    // Shorter; an error when the file is not as this object left it.
    [[nodiscard]] virtual auto truncate(std::uint64_t size) -> result<> = 0;
    [[nodiscard]] virtual auto sync() -> result<> = 0;

    // An empty next file, whatever a crash left of another.
    [[nodiscard]] virtual auto start_next() -> result<> = 0;
    [[nodiscard]] virtual auto append_next(std::string_view bytes) -> result<> = 0;
    [[nodiscard]] virtual auto sync_next() -> result<> = 0;
    // A second name for the present file, so that it outlives its replacement; the one that had
    // this name is gone.
    [[nodiscard]] virtual auto keep_present() -> result<> = 0;
    // The next file takes the name and is the present one.
    [[nodiscard]] virtual auto adopt_next() -> result<> = 0;
    // Names are on the disk.
    [[nodiscard]] virtual auto sync_names() -> result<> = 0;

    // Empty: there is none.
    [[nodiscard]] virtual auto witness() -> result<std::string> = 0;
    // Not through to the disk: an old witness is a true one. All texts have the same length.
    [[nodiscard]] virtual auto set_witness(std::string_view text) -> result<> = 0;
};

} // namespace glove::journal
