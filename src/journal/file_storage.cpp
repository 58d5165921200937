// Every decision is made on an open descriptor. A name is looked at only to see whether it still
// leads to that descriptor.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <glove/journal/file_storage.hpp>
#include <sys/file.h>
#include <sys/stat.h>

namespace glove::journal {

namespace {

constexpr int plain = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// The defect, or nothing.
[[nodiscard]] auto not_private(const sys::file_facts& facts, ::mode_t type, ::mode_t mode) -> const
    char* {
    if (facts.identity.type != type)
        return type == S_IFREG ? "is not a regular file" : "is not a directory";
    if (facts.owner != ::geteuid()) return "belongs to another user";
    if (facts.permissions != mode)
        return type == S_IFREG ? "does not have mode 0600" : "does not have mode 0700";
    return nullptr;
}

[[nodiscard]] auto require_private(sys::fd_ref file, const std::string& name)
    -> result<sys::file_facts> {
    GLOVE_TRY(auto facts, sys::inspect(file));
    const char* defect = not_private(facts, S_IFREG, 0600);
    if (defect == nullptr && facts.links != 1) defect = "has more than one link";
    if (defect != nullptr) return fail(errc::not_permitted, "journal.private", name + " " + defect);
    return facts;
}

[[nodiscard]] auto lock_file(sys::fd_ref file, const std::string& name) -> result<> {
    int done = 0;
    do done = ::flock(file.get(), LOCK_EX | LOCK_NB);
    while (done != 0 && errno == EINTR);
    if (done == 0) return {};
    if (errno == EWOULDBLOCK)
        return fail(errc::conflict, "journal.locked", name + " is in use by another process");
    return fail_os("journal.locked", errno, name);
}

} // namespace

auto file_storage::open(const std::string& directory, const std::string& name, access how)
    -> result<file_storage> {
    if (name.empty() || name.find('/') != name.npos || name.front() == '.')
        return fail(errc::invalid_input, "journal.open", "'" + name + "' is no name for a journal");
    file_storage out{name, how};
    out.directory_ =
        sys::unique_fd{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!out.directory_) return fail_os("journal.directory", errno, directory);
    GLOVE_TRY(const auto facts, sys::inspect(out.directory_));
    if (const char* defect = not_private(facts, S_IFDIR, 0700); defect != nullptr)
        return fail(errc::not_permitted, "journal.directory", directory + " " + defect);
    if (how == access::write) GLOVE_CHECK(out.lock());
    GLOVE_CHECK(out.open_witness()); // before the file: it may only be older
    GLOVE_CHECK(out.open_file());
    return out;
}

auto file_storage::lock() -> result<> {
    const auto name = name_ + ".lock";
    GLOVE_TRY(lock_, sys::open_private_append(directory_, name));
    return lock_file(lock_, name);
}

auto file_storage::open_file() -> result<> {
    const int flags = how_ == access::write ? O_RDWR | O_APPEND : O_RDONLY;
    file_ = sys::unique_fd{::openat(directory_.get(), name_.c_str(), flags | plain)};
    if (!file_) return errno == ENOENT ? result<>{} : fail_os("journal.open", errno, name_);
    // Writers that do not know of NAME.lock lock the file.
    if (how_ == access::write) {
        GLOVE_CHECK(lock_file(file_, name_));
        GLOVE_CHECK(undo_second_name());
    }
    GLOVE_TRY(last_, require_private(file_, name_));
    GLOVE_TRY(const auto now, named(name_));
    if (now != last_.identity)
        return fail(errc::conflict, "journal.identity",
                    name_ + " was replaced while it was opened");
    return {};
}

// A rotation that did not come to its end may have left a second name of the present file.
auto file_storage::undo_second_name() -> result<> {
    GLOVE_TRY(const auto facts, sys::inspect(file_));
    if (facts.links != 2) return {};
    const auto other = named(name_ + ".1");
    if (!other || *other != facts.identity) return {};
    if (::unlinkat(directory_.get(), (name_ + ".1").c_str(), 0) != 0)
        return fail_os("journal.keep", errno, name_);
    return {};
}

auto file_storage::named(const std::string& name) const -> result<sys::file_identity> {
    const auto facts = sys::inspect(directory_, name);
    if (!facts) return fail_os("journal.identity", facts.error().os, name);
    return facts->identity;
}

auto file_storage::writable() const -> result<> {
    if (how_ == access::write) return {};
    return fail(errc::wrong_state, "journal.read_only", name_ + " was opened to be read");
}

auto file_storage::size() -> result<std::optional<std::uint64_t>> {
    if (!file_) return std::nullopt;
    if (how_ == access::read) { // a writer may be at work
        GLOVE_TRY(last_, sys::inspect(file_));
    }
    return last_.size;
}

auto file_storage::read(std::uint64_t at, std::span<char> out) -> result<std::size_t> {
    std::size_t done = 0;
    while (done < out.size()) {
        const auto got = ::pread(file_.get(), out.data() + done, out.size() - done,
                                 static_cast<::off_t>(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_os("journal.read", errno, name_);
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

auto file_storage::check() -> result<> {
    GLOVE_CHECK(writable());
    // While the name leads to the file, it tells all of it in one look: an inode that is held open
    // cannot be another file's.
    if (const auto by_name = sys::inspect(directory_, name_); by_name && *by_name == last_)
        return {};
    GLOVE_TRY(const auto now, sys::inspect(file_));
    const char* defect = nullptr;
    if (now.size != last_.size) defect = "has another size";
    else if (now.links != last_.links) defect = "was unlinked or has another link";
    else if (now.changed_ns != last_.changed_ns) defect = "was changed";
    else if (now.owner != last_.owner || now.permissions != last_.permissions)
        defect = "has another owner or mode";
    else if (const auto found = named(name_); !found || *found != last_.identity)
        defect = "was replaced";
    if (defect == nullptr) return {};
    return fail(errc::conflict, "journal.identity",
                name_ + " " + defect + " since it was used last");
}

// What a change of our own left behind; `size` is what it must have become.
auto file_storage::remember(std::uint64_t size) -> result<> {
    GLOVE_TRY(last_, sys::inspect(file_));
    if (last_.size == size) return {};
    last_.size = size; // so that every later look at the file fails, too
    last_.changed_ns = 0;
    return fail(errc::conflict, "journal.identity", name_ + " was changed while it was written");
}

auto file_storage::append(std::string_view bytes) -> result<> {
    GLOVE_CHECK(writable());
    const auto before = last_.size;
    const auto written = sys::write_all(file_, bytes);
    if (written) return remember(before + bytes.size());
    // A part may be there; more than we gave is not ours.
    GLOVE_TRY(last_, sys::inspect(file_));
    if (last_.size < before || last_.size > before + bytes.size()) last_.changed_ns = 0;
    return fail_os("journal.append", written.error().os, name_);
}

auto file_storage::truncate(std::uint64_t size) -> result<> {
    GLOVE_CHECK(check());
    if (size > last_.size)
        return fail(errc::invalid_input, "journal.truncate", name_ + " is shorter than that");
    if (::ftruncate(file_.get(), static_cast<::off_t>(size)) != 0)
        return fail_os("journal.truncate", errno, name_);
    return remember(size);
}

auto file_storage::sync() -> result<> {
    if (::fdatasync(file_.get()) != 0) return fail_os("journal.sync", errno, name_);
    return {};
}

auto file_storage::start_next() -> result<> {
    GLOVE_CHECK(writable());
    const auto name = name_ + ".next";
    if (::unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT)
        return fail_os("journal.next", errno, name);
    next_ = sys::unique_fd{::openat(directory_.get(), name.c_str(),
                                    O_RDWR | O_APPEND | O_CREAT | O_EXCL | plain, 0600)};
    // Whatever the caller's umask took away is given back.
    if (!next_ || ::fchmod(next_.get(), 0600) != 0) return fail_os("journal.next", errno, name);
    return lock_file(next_, name);
}

auto file_storage::append_next(std::string_view bytes) -> result<> {
    if (auto written = sys::write_all(next_, bytes); !written)
        return fail_os("journal.next", written.error().os, name_);
    return {};
}

auto file_storage::sync_next() -> result<> {
    if (::fsync(next_.get()) != 0) return fail_os("journal.next", errno, name_);
    return {};
}

auto file_storage::keep_present() -> result<> {
    GLOVE_CHECK(check());
    const auto kept = name_ + ".1";
    if (::unlinkat(directory_.get(), kept.c_str(), 0) != 0 && errno != ENOENT)
        return fail_os("journal.keep", errno, kept);
    if (::linkat(directory_.get(), name_.c_str(), directory_.get(), kept.c_str(), 0) != 0)
        return fail_os("journal.keep", errno, kept);
    return {};
}

auto file_storage::adopt_next() -> result<> {
    const auto next = name_ + ".next";
    GLOVE_TRY(const auto facts, sys::inspect(next_));
    GLOVE_TRY(const auto now, named(next));
    if (now != facts.identity)
        return fail(errc::conflict, "journal.identity", next + " was replaced");
    // The first file takes no name that somebody else has taken meanwhile.
    const unsigned flags = file_ ? 0U : RENAME_NOREPLACE;
    if (::renameat2(directory_.get(), next.c_str(), directory_.get(), name_.c_str(), flags) != 0)
        return fail_os("journal.adopt", errno, name_);
    file_ = std::move(next_);
    next_ = {};
    GLOVE_TRY(last_, require_private(file_, name_));
    GLOVE_TRY(const auto adopted, named(name_));
    if (adopted != last_.identity)
        return fail(errc::conflict, "journal.identity", name_ + " was replaced");
    return {};
}

auto file_storage::sync_names() -> result<> {
    if (::fsync(directory_.get()) != 0) return fail_os("journal.names", errno, name_);
    return {};
}

auto file_storage::open_witness() -> result<> {
    const auto name = name_ + ".head";
    const int flags = how_ == access::write ? O_RDWR : O_RDONLY;
    witness_ = sys::unique_fd{::openat(directory_.get(), name.c_str(), flags | plain)};
    if (!witness_) return errno == ENOENT ? result<>{} : fail_os("journal.witness", errno, name);
    GLOVE_TRY([[maybe_unused]] const auto facts, require_private(witness_, name));
    return {};
}

auto file_storage::witness() -> result<std::string> {
    if (!witness_) return std::string{};
    const auto once = [&]() -> result<std::string> {
        std::array<char, 512> text{}; // more than any
        const auto got = ::pread(witness_.get(), text.data(), text.size(), 0);
        if (got < 0) return fail_os("journal.witness", errno, name_ + ".head");
        return std::string{text.data(), static_cast<std::size_t>(got)};
    };
    GLOVE_TRY(auto text, once());
    // Beside a writer, one look may see the half of a change.
    for (int again = 0; how_ == access::read && again < 8; ++again) {
        GLOVE_TRY(auto second, once());
        if (second == text) break;
        text = std::move(second);
    }
    // A witness that is empty is not the same as none.
    return text.empty() ? std::string(1, '\0') : text;
}

auto file_storage::set_witness(std::string_view text) -> result<> {
    GLOVE_CHECK(writable());
    const auto name = name_ + ".head";
    if (!witness_) { // whole from the moment it has its name
        GLOVE_CHECK(sys::replace_durably(directory_, name, text, last_.written_ns));
        return open_witness();
    }
    const auto put = ::pwrite(witness_.get(), text.data(), text.size(), 0);
    if (put == static_cast<::ssize_t>(text.size())) {
        GLOVE_TRY(const auto facts, sys::inspect(witness_));
        if (facts.size == text.size() ||
            ::ftruncate(witness_.get(), static_cast<::off_t>(text.size())) == 0)
            return {};
    }
    return fail_os("journal.witness", put < 0 ? errno : EIO, name);
}

} // namespace glove::journal
