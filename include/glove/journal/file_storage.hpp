// A journal as a file NAME of the owner alone, in a directory of the owner alone.
//
// Guarantees: one writer, by locks on NAME.lock and on the file itself; no link is followed; before
// each change the file is the one that was opened, under its name, with the size, time of change,
// mode and owner that this object left it with; nothing that somebody else appended is ever cut
// off. It does not protect the file from a process of the same user that rewrites it.
//
// Beside the file: NAME.head is the witness, NAME.next exists during a rotation, NAME.1 is the file
// before the last rotation.
//
// Error steps: journal.directory, journal.locked, journal.private, journal.identity,
// journal.read_only, and journal.{open,read,append,truncate,sync,next,keep,adopt,names,witness} for
// what the system refuses.
#pragma once
#include <glove/journal/storage.hpp>
#include <glove/sys/fd.hpp>
#include <glove/sys/files.hpp>
#include <string>

namespace glove::journal {

enum class access : std::uint8_t {
    write,
    read, // beside a writer; every change is refused
};

class file_storage final : public storage {
public:
    // The directory must exist. A file that does not is made by the log.
    [[nodiscard]] static auto open(const std::string& directory, const std::string& name,
                                   access how) -> result<file_storage>;

    [[nodiscard]] auto size() -> result<std::optional<std::uint64_t>> override;
    [[nodiscard]] auto read(std::uint64_t at, std::span<char> out) -> result<std::size_t> override;
    [[nodiscard]] auto check() -> result<> override;
    [[nodiscard]] auto append(std::string_view bytes) -> result<> override;
    [[nodiscard]] auto truncate(std::uint64_t size) -> result<> override;
    [[nodiscard]] auto sync() -> result<> override;
    [[nodiscard]] auto start_next() -> result<> override;
    [[nodiscard]] auto append_next(std::string_view bytes) -> result<> override;
    [[nodiscard]] auto sync_next() -> result<> override;
    [[nodiscard]] auto keep_present() -> result<> override;
    [[nodiscard]] auto adopt_next() -> result<> override;
    [[nodiscard]] auto sync_names() -> result<> override;
    [[nodiscard]] auto witness() -> result<std::string> override;
    [[nodiscard]] auto set_witness(std::string_view text) -> result<> override;

private:
    file_storage(std::string name, access how) : name_{std::move(name)}, how_{how} {}
    [[nodiscard]] auto lock() -> result<>;
    [[nodiscard]] auto open_file() -> result<>;
    [[nodiscard]] auto open_witness() -> result<>;
    [[nodiscard]] auto undo_second_name() -> result<>;
    [[nodiscard]] auto writable() const -> result<>;
    [[nodiscard]] auto remember(std::uint64_t size) -> result<>;
    [[nodiscard]] auto named(const std::string& name) const -> result<sys::file_identity>;

    std::string name_;
    access how_;
    sys::unique_fd directory_, lock_, file_, next_, witness_;
    sys::file_facts last_; // of `file_`, as this object left it
};

} // namespace glove::journal
