// An image has its name when it is formatted, and only then. Whoever uses one holds its lock; the
// process that serves it holds it too, so that one that outlives the service keeps others away.
#include "container/image/image_names.hpp"
#include "container/image/image_protocol.hpp"
#include "container/image/image_tools.hpp"
#include "container/linux/loop_device.hpp"
#include "container/session_filesystem.hpp"
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <glove/sys/trees.hpp>
#include <linux/mount.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace glove::container {

namespace {

constexpr std::chrono::seconds patience_with_server{60};
constexpr int most_attempts = 20, attempt_ms = 5;
constexpr const char* content_name = "content";
// A full one has a few blocks left: the kernel keeps some for itself, and fuse2fs refuses a write
// as a whole, of which it is given 128 KiB at once.
constexpr std::uint64_t least_left = 256UL << 10U;
constexpr std::uint64_t bytes_of_trial = 1UL << 20U;

enum class wish : std::uint8_t { change, look };

struct place {
    sys::unique_fd root;
    image_means means{};
    image_tools tools;
    std::chrono::nanoseconds patience_with_look{};
};

[[nodiscard]] auto refuse_name(std::string_view session_id, std::string_view alias) {
    return fail(errc::invalid_input, "files.image",
                "session " + std::string{session_id} + ", " + std::string{alias} +
                    ": no names for an image");
}

[[nodiscard]] auto reserve(sys::fd_ref image, std::uint64_t bytes) -> result<> {
    int os = EINTR;
    while (os == EINTR)
        os = ::fallocate(image.get(), 0, 0, static_cast<::off_t>(bytes)) == 0 ? 0 : errno;
    if (os == 0) return {};
    auto problem = fail_os("files.image", os, "room for " + std::to_string(bytes) + " bytes");
    if (os == ENOSPC || os == EDQUOT)
        problem.error().remedy = "make room on the file system of the materialization root";
    return problem;
}

// Without a name, its bytes reserved.
[[nodiscard]] auto formatted(const place& in, std::uint64_t bytes) -> result<sys::unique_fd> {
    sys::unique_fd out{::openat(in.root.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    if (!out) return fail_os("files.image", errno, "a file without a name");
    if (::fchmod(out.get(), 0600) != 0) return fail_os("files.image", errno, "fchmod");
    GLOVE_CHECK(reserve(out, bytes));
    // The session's directory, in the first that is ever written.
    GLOVE_TRY(const auto first, make_scratch(1, 1));
    if (::mkdirat(first.content().get(), content_name, 0755) != 0 ||
        ::fchmodat(first.content().get(), content_name, 0755, 0) != 0)
        return fail_os("files.format", errno, "a directory to begin with");
    GLOVE_CHECK(format_image(in.tools, in.means, out, bytes, first.content()));
    GLOVE_CHECK(reserve(out, bytes)); // mke2fs makes holes instead of writing zeros
    return out;
}

[[nodiscard]] auto give_name(sys::fd_ref root, sys::fd_ref image, const std::string& name)
    -> result<> {
    const auto source = "/proc/self/fd/" + std::to_string(image.get());
    if (::linkat(AT_FDCWD, source.c_str(), root.get(), name.c_str(), AT_SYMLINK_FOLLOW) != 0)
        return fail_os("files.image", errno, name);
    if (const auto synced = sys::sync(root); !synced)
        return fail_os("files.image", synced.error().os, "fsync of the materialization root");
    return {};
}

[[nodiscard]] auto make_image(const place& in, const std::string& name, std::uint64_t bytes)
    -> result<> {
    GLOVE_TRY(const auto image, formatted(in, bytes));
    if (const auto synced = sys::sync(image); !synced)
        return fail_os("files.format", synced.error().os, "fsync of the image");
    return give_name(in.root, image, name);
}

// 0, or why it cannot be locked. A program that another thread starts has a copy of every lock for
// the moment until it begins: one that is held for longer is somebody's.
[[nodiscard]] auto lock(sys::fd_ref image) -> int {
    for (int attempt = 0;; ++attempt) {
        if (::flock(image.get(), LOCK_EX | LOCK_NB) == 0) return 0;
        if (errno != EWOULDBLOCK || attempt == most_attempts) return errno;
        (void)::poll(nullptr, 0, attempt_ms);
    }
}

// Held by a lock, which nobody else has. What a process serves is open for reading only: the
// process opens it anew, and what it says cannot come into the image.
[[nodiscard]] auto open_image(const place& in, const std::string& name, wish what)
    -> result<sys::unique_fd> {
    const bool writes = what == wish::change && in.means == image_means::loop;
    auto opened =
        sys::open_beneath(in.root, name, (writes ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK);
    if (!opened) return fail_os("files.image", opened.error().os, name);
    if (const int os = lock(*opened); os == EWOULDBLOCK)
        return fail(errc::conflict, "files.busy", name + " is in use");
    else if (os != 0) return fail_os("files.busy", os, name);
    const auto facts = sys::inspect(*opened);
    if (!facts) return fail_os("files.image", facts.error().os, name);
    if (facts->links == 0) return fail(errc::not_found, "files.image", name + " was removed");
    if (facts->identity.type != S_IFREG || facts->owner != ::geteuid() || facts->links != 1 ||
        facts->permissions != 0600)
        return fail(errc::not_permitted, "files.image",
                    name + " is no file of one name that is the service's alone");
    return *std::move(opened);
}

[[nodiscard]] auto put_under_quarantine(const place& in, std::string_view session_id,
                                        std::string_view alias, error why) -> error {
    const auto from = name_of(image_name::image, session_id, alias);
    const auto to = name_of(image_name::quarantined, session_id, alias);
    why.detail = from + ": " + why.detail;
    if (::renameat2(in.root.get(), from.c_str(), in.root.get(), to.c_str(), RENAME_NOREPLACE) != 0)
        why.detail +=
            "; it keeps its name: " + to + " cannot be made, errno " + std::to_string(errno);
    else why.remedy = "look at " + to + " in the materialization root, and remove it";
    (void)sys::sync(in.root);
    return why;
}

} // namespace

auto to_string(image_means means) noexcept -> std::string_view {
    return means == image_means::loop ? "loop" : "fuse";
}

struct session_images::state {
    place at;

    using file_state = session_filesystem::state;

    [[nodiscard]] static auto mount_loop(file_state& files) -> result<> {
        GLOVE_TRY(auto loop, attach_loop(files.image));
        std::vector<mount_option> options{{"source", loop.path.c_str()}, {"errors", "remount-ro"}};
        if (!files.writable) options.push_back({"ro"});
        GLOVE_TRY(files.mount, make_mount("ext4", options, files.writable ? 0U : MOUNT_ATTR_RDONLY,
                                          "files.mount"));
        files.loop = std::move(loop.path);
        return {};
    }

    [[nodiscard]] auto mount_fuse(file_state& files, std::optional<sys::fd_ref> entry) const
        -> result<> {
        const sys::unique_fd questions{::open("/dev/fuse", O_RDWR | O_CLOEXEC)};
        if (!questions) return fail_os("files.mount", errno, "/dev/fuse");
        const auto number = std::to_string(questions.get());
        const auto user = std::to_string(::geteuid()), group = std::to_string(::getegid());
        std::vector<mount_option> options{{"source", "glove-image"},   {"fd", number.c_str()},
                                          {"rootmode", "40000"},       {"user_id", user.c_str()},
                                          {"group_id", group.c_str()}, {"default_permissions"}};
        if (!files.writable) options.push_back({"ro"});
        GLOVE_TRY(files.mount, make_mount("fuse", options, files.writable ? 0U : MOUNT_ATTR_RDONLY,
                                          "files.mount"));
        GLOVE_TRY(auto server,
                  image_process::start({.name = files.writable ? image_serve : image_show,
                                        .helper = at.tools.helper,
                                        .tool = at.tools.serve,
                                        .image = files.image,
                                        .fuse = questions,
                                        .entry = entry}));
        files.server.emplace(std::move(server));
        return {};
    }

    // The first thing that is asked of whoever serves it.
    [[nodiscard]] static auto open_content(file_state& files) -> result<> {
        std::unique_ptr<watchdog> patience;
        if (files.server) {
            GLOVE_TRY(patience, watchdog::over(*files.server, patience_with_server));
        }
        auto content = sys::open_beneath(files.mount, content_name, O_RDONLY | O_DIRECTORY);
        if (content) {
            files.content = *std::move(content);
            return {};
        }
        const int os = content.error().os;
        if (os == ENOENT || os == ENOTDIR || os == ELOOP)
            return fail(errc::corrupt, "files.quarantined",
                        "the session's directory is not in it, or is none");
        return fail_os("files.mount", os, "the session's directory in the image");
    }

    // `image` is held by its lock, and good.
    [[nodiscard]] auto mount(sys::unique_fd image, wish what,
                             std::optional<sys::fd_ref> entry) const -> result<session_filesystem> {
        auto files = std::make_unique<file_state>();
        files->writable = what == wish::change;
        files->image = std::move(image);
        files->least_bytes = least_left;
        GLOVE_CHECK(at.means == image_means::loop ? mount_loop(*files) : mount_fuse(*files, entry));
        if (auto opened = open_content(*files); !opened) {
            if (files->server) add_words(*files, opened.error());
            return std::unexpected(std::move(opened).error());
        }
        if (files->server) {
            GLOVE_TRY(files->watch, use_watch::over(files->content));
        }
        if (files->server && what == wish::look) {
            GLOVE_TRY(files->lifetime, watchdog::over(*files->server, at.patience_with_look));
        }
        return session_filesystem{std::move(files)};
    }

    static void add_words(file_state& files, error& problem) {
        files.mount = {};
        const sys::system_clock time;
        if (const auto status =
                files.server->wait(time, time.monotonic() + std::chrono::seconds{5}))
            problem.detail += "; fuse2fs ended with " + std::to_string(*status);
        if (const auto words = files.server->words(); !words.empty())
            problem.detail += ": " + words;
    }

    [[nodiscard]] auto open_checked(std::string_view session_id, std::string_view alias, wish what,
                                    std::optional<sys::fd_ref> entry, sys::unique_fd image,
                                    const std::stop_token& stop = {}) const
        -> result<opened_image> {
        GLOVE_TRY(const auto facts, sys::inspect(image));
        const auto keep_away = [&](error why) {
            return why.code == errc::corrupt
                       ? put_under_quarantine(at, session_id, alias, std::move(why))
                       : std::move(why);
        };
        auto checked = facts.size < bytes_of_trial
                           ? fail(errc::corrupt, "files.quarantined",
                                  "it has only " + std::to_string(facts.size) + " bytes")
                           : check_image(at.tools, image, entry, stop);
        if (!checked) return std::unexpected(keep_away(std::move(checked).error()));
        auto files = mount(std::move(image), what, entry);
        if (!files) return std::unexpected(keep_away(std::move(files).error()));
        return opened_image{.files = *std::move(files), .state = *checked};
    }

    // That everything works, on an image that nobody sees.
    [[nodiscard]] auto try_out() const -> result<> {
        GLOVE_TRY(auto writable, formatted(at, bytes_of_trial));
        if (at.means == image_means::fuse) {
            auto readable = sys::reopen(writable, O_RDONLY | O_CLOEXEC);
            if (!readable)
                return fail_os("files.image", readable.error().os, "a file without a name");
            writable = *std::move(readable);
        }
        GLOVE_CHECK(check_image(at.tools, writable, std::nullopt));
        GLOVE_TRY(auto files, mount(std::move(writable), wish::change, std::nullopt));
        const sys::system_clock time;
        return files.close(time, time.monotonic() + patience_with_server);
    }
};

session_images::session_images(std::unique_ptr<state> own) : state_{std::move(own)} {}
session_images::session_images(session_images&&) noexcept = default;
session_images::~session_images() = default;

namespace {

[[nodiscard]] auto open_root(const std::string& path) -> result<sys::unique_fd> {
    auto root = sys::make_private_directory(path);
    if (!root)
        return std::unexpected(error{root.error().code,
                                     "files.root",
                                     root.error().os,
                                     path + ": " + root.error().detail,
                                     {}});
    const auto facts = sys::inspect(*root);
    if (!facts) return fail_os("files.root", facts.error().os, path);
    if ((facts->permissions & 0077U) != 0)
        return fail(errc::not_permitted, "files.root", path + " is open to others",
                    "chmod 700 " + path);
    return *std::move(root);
}

} // namespace

auto session_images::open(const std::string& root, const image_options& how)
    -> result<session_images> {
    std::string reasons;
    std::string remedy;
    for (const auto means : {image_means::loop, image_means::fuse}) {
        if (how.only && *how.only != means) continue;
        auto own = std::make_unique<state>();
        GLOVE_TRY(own->at.root, open_root(root));
        own->at.means = means;
        own->at.patience_with_look = how.patience_with_look;
        auto tools = find_tools(means, how.program);
        auto tried = tools ? result<>{} : std::unexpected(tools.error());
        if (tools) {
            own->at.tools = *std::move(tools);
            tried = own->try_out();
        }
        if (tried) return session_images{std::move(own)};
        const auto& problem = tried.error();
        reasons += (reasons.empty() ? "" : "; ") + std::string{to_string(means)} + ": " +
                   std::string{problem.step} + ": " + problem.detail;
        if (problem.os != 0) reasons += ", errno " + std::to_string(problem.os);
        if (!problem.remedy.empty()) remedy = problem.remedy;
    }
    return fail(errc::unsupported, "files.means", std::move(reasons),
                remedy.empty() ? "install the packages e2fsprogs and fuse2fs" : std::move(remedy));
}

auto session_images::means() const -> image_means { return state_->at.means; }
auto session_images::root() const -> sys::fd_ref { return state_->at.root; }

auto session_images::make(std::string_view session_id, std::string_view alias, std::uint64_t bytes,
                          std::optional<sys::fd_ref> entry) -> result<opened_image> {
    constexpr auto most = std::uint64_t{1} << 44U;
    if (!is_good(session_id, alias)) return refuse_name(session_id, alias);
    if (bytes < bytes_of_trial || bytes > most)
        return fail(errc::invalid_input, "files.image",
                    std::to_string(bytes) + " bytes are no size for an image");
    const auto& at = state_->at;
    const auto name = name_of(image_name::image, session_id, alias);
    auto image = open_image(at, name, wish::change);
    if (!image && image.error().code != errc::not_found) return std::unexpected(image.error());
    if (!image) {
        GLOVE_CHECK(make_image(at, name, bytes));
        GLOVE_TRY(auto fresh, open_image(at, name, wish::change));
        GLOVE_TRY(auto files, state_->mount(std::move(fresh), wish::change, entry));
        return opened_image{.files = std::move(files)};
    }
    const auto facts = sys::inspect(*image);
    if (!facts || facts->size != bytes)
        return fail(errc::conflict, "files.image",
                    name + " is there already, and not of " + std::to_string(bytes) + " bytes");
    return state_->open_checked(session_id, alias, wish::change, entry, *std::move(image));
}

auto session_images::look(std::string_view session_id, std::string_view alias,
                          const std::stop_token& stop) -> result<opened_image> {
    if (!is_good(session_id, alias)) return refuse_name(session_id, alias);
    GLOVE_TRY(auto image,
              open_image(state_->at, name_of(image_name::image, session_id, alias), wish::look));
    return state_->open_checked(session_id, alias, wish::look, std::nullopt, std::move(image),
                                stop);
}

auto session_images::record_name(std::string_view session_id, std::string_view alias)
    -> std::string {
    return name_of(image_name::record, session_id, alias);
}

auto session_images::remove(std::string_view session_id, std::string_view alias) -> result<> {
    if (!is_good(session_id, alias)) return refuse_name(session_id, alias);
    const auto& at = state_->at;
    const auto image = open_image(at, name_of(image_name::image, session_id, alias), wish::look);
    if (!image && image.error().code != errc::not_found) return std::unexpected(image.error());
    // The image last: what is left of an interruption is found by it.
    for (const auto kind : {image_name::record, image_name::quarantined, image_name::image}) {
        const auto name = name_of(kind, session_id, alias);
        if (::unlinkat(at.root.get(), name.c_str(), 0) != 0 && errno != ENOENT)
            return fail_os("files.remove", errno, name);
    }
    if (const auto synced = sys::sync(at.root); !synced)
        return fail_os("files.remove", synced.error().os, "fsync of the materialization root");
    return {};
}

auto session_images::list() const -> result<std::vector<kept_image>> {
    std::vector<kept_image> out;
    GLOVE_TRY(const auto names, sys::names_in(state_->at.root));
    for (const auto& name : names)
        for (const auto kind : {image_name::image, image_name::quarantined}) {
            auto of = subject_of(kind, name);
            if (!of) continue;
            struct ::stat found{};
            if (::fstatat(state_->at.root.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0 ||
                !S_ISREG(found.st_mode))
                continue;
            out.push_back({.session_id = std::move(of->session_id),
                           .alias = std::move(of->alias),
                           .quarantined = kind == image_name::quarantined});
        }
    return out;
}

} // namespace glove::container
