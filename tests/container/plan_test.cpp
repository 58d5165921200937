#include <algorithm>
#include <functional>
#include <glove/container/plan.hpp>
#include <gmock/gmock.h>
#include <map>
#include <rapidcheck/gtest.h>
#include <set>
#include <support/folder.hpp>
#include <support/forked.hpp>
#include <sys/sysmacros.h>

namespace {

using namespace glove;
using namespace glove::container;
using test::folder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

auto read(std::string path) -> grant { return {"--read", std::move(path), access::read}; }
auto write(std::string path) -> grant { return {"--write", std::move(path), access::write}; }

auto wish_for(std::vector<grant> grants, std::vector<std::string> hidden = {}) -> profile {
    profile out;
    out.argv = {"true"};
    out.grants = std::move(grants);
    out.hidden = std::move(hidden);
    return out;
}

auto planned(const profile& wish) -> plan {
    auto made = make_plan(wish);
    if (made) return *std::move(made);
    ADD_FAILURE() << made.error().step << ": " << made.error().detail;
    return {};
}

auto problem_of(const profile& wish) -> error {
    const auto made = make_plan(wish);
    if (!made) return made.error();
    ADD_FAILURE() << "was not refused";
    return {};
}

// One line an entry of what the operator decides: "asked bind write /path", in the tree's order.
auto line_of(const tree_entry& entry) -> std::string {
    constexpr std::string_view kinds[] = {"directory", "link",    "file", "bind",
                                          "device",    "scratch", "mask"};
    constexpr std::string_view origins[] = {"system",  "managed", "asked",
                                            "program", "hidden",  "guarded"};
    std::string out{origins[static_cast<std::size_t>(entry.origin)]};
    out.append(" ").append(kinds[static_cast<std::size_t>(entry.kind)]);
    out.append(entry.mode == access::write ? " write " : " read ").append(entry.path);
    if (entry.kind == entry_kind::link) out.append(" -> ").append(entry.text);
    return out;
}

auto lines(const plan& made, bool everything = false) -> std::vector<std::string> {
    std::vector<std::string> out;
    for (const auto& entry : made.tree)
        if (everything || (entry.origin != origin::system && entry.origin != origin::managed))
            out.push_back(line_of(entry));
    return out;
}

auto entry_at(const plan& made, std::string_view path) -> const tree_entry* {
    const auto found = std::ranges::find(made.tree, path, &tree_entry::path);
    return found == made.tree.end() ? nullptr : &*found;
}

// --- what a program needs

auto program(std::string path) -> grant {
    return {"--profile", std::move(path), access::read, true};
}

TEST(PlanPrograms, AreListedApartWithTheirLinks) {
    const folder files;
    const auto real = files.file("tools/real");
    const auto link = files.link("bin/tool", "../tools/real");
    EXPECT_THAT(lines(planned(wish_for({program(link)}))),
                ElementsAre("program link read " + link + " -> ../tools/real",
                            "program bind read " + real));
}

TEST(PlanPrograms, AreLeftOutWhereSomethingElseShowsThem) {
    const folder files;
    const auto tools = files.directory("tools");
    const auto real = files.file("tools/real");
    const auto link = files.link("bin/tool", real);
    EXPECT_THAT(lines(planned(wish_for({program(link), program(tools), read(tools)}))),
                UnorderedElementsAre("asked bind read " + tools,
                                     "program link read " + link + " -> " + real));
    EXPECT_THAT(lines(planned(wish_for({program(real), program(tools)}))),
                ElementsAre("program bind read " + tools));
    EXPECT_THAT(lines(planned(wish_for({program("/usr/bin/env"), program("/bin/sh")}))), IsEmpty());
}

TEST(PlanPrograms, DoNotMakeAnOverlapOfOthersGood) {
    const folder files;
    const auto tools = files.directory("tools");
    const auto inner = files.directory("tools/inner");
    EXPECT_THAT(problem_of(wish_for({program(tools), read(inner)})).detail, HasSubstr("overlaps"));
    EXPECT_THAT(problem_of(wish_for({read(tools), read(inner)})).detail, HasSubstr("overlaps"));
}

TEST(PlanPrograms, CannotShowGlovesOwnFiles) {
    const folder files;
    auto wish = wish_for({program(files.directory("tools"))});
    EXPECT_EQ(lines(planned(wish)).size(), 1U);
    wish.control_paths = {files.directory("tools/state")};
    EXPECT_THAT(problem_of(wish).detail, HasSubstr("Glove's own files"));
}

TEST(PlanPrograms, AreLookedForAlongTheirDirectoriesFirst) {
    auto wish = wish_for({});
    wish.path_directories = {"/opt/a", "/opt/b"};
    const auto made = planned(wish);
    ASSERT_GT(made.programs.size(), 2U);
    EXPECT_EQ(made.programs[0], "/opt/a/true");
    EXPECT_EQ(made.programs[1], "/opt/b/true");
    EXPECT_EQ(made.programs[2], "/usr/local/bin/true");
    EXPECT_THAT(made.environment,
                testing::Contains(testing::StartsWith("PATH=/opt/a:/opt/b:/usr/local/bin:")));
}

// --- the tree as a whole

void expect_parents_first(const plan& made) {
    std::map<std::string, entry_kind> seen;
    for (const auto& entry : made.tree) {
        EXPECT_TRUE(sys::is_normal_absolute(entry.path)) << entry.path;
        EXPECT_TRUE(seen.emplace(entry.path, entry.kind).second) << entry.path << " is there twice";
        bool provided = false; // by something of the host that holds it
        for (auto up = sys::parent_of(entry.path); up != "/"; up = sys::parent_of(up)) {
            const auto parent = seen.find(up);
            if (parent == seen.end()) continue;
            EXPECT_NE(parent->second, entry_kind::link) << entry.path << " lies behind a link";
            EXPECT_NE(parent->second, entry_kind::mask) << entry.path << " lies below a mask";
            EXPECT_NE(parent->second, entry_kind::file) << entry.path;
            provided = provided || parent->second == entry_kind::bind;
        }
        const auto parent = sys::parent_of(entry.path);
        EXPECT_TRUE(provided || parent == "/" || seen.contains(parent)) << entry.path;
    }
}

TEST(Plan, EveryParentComesBeforeItsChildren) {
    const folder place;
    place.file("a/b/c/file");
    place.file("w/x/hidden");
    expect_parents_first(planned(
        wish_for({read(place / "a/b/c/file"), write(place / "w")}, {place / "w/x/hidden"})));
}

TEST(Plan, WithoutAGrantItHoldsWhatGloveProvides) {
    const auto made = planned(wish_for({}));
    EXPECT_THAT(lines(made), IsEmpty());
    EXPECT_EQ(made.work_directory, "/home/agent");
    EXPECT_FALSE(made.has_workspace);
    for (const auto& [path, mode] :
         {std::pair{"/home/agent", 0700U}, std::pair{"/tmp", 01777U}, std::pair{"/var/tmp", 01777U},
          std::pair{"/run", 0755U}, std::pair{"/dev/shm", 01777U}}) {
        const auto* const entry = entry_at(made, path);
        ASSERT_NE(entry, nullptr) << path;
        EXPECT_EQ(entry->kind, entry_kind::scratch) << path;
        EXPECT_EQ(entry->permissions, mode) << path;
    }
    for (const auto* node : {"null", "zero", "full", "random", "urandom", "tty"})
        EXPECT_EQ(entry_at(made, "/dev/" + std::string{node})->kind, entry_kind::device) << node;
    EXPECT_EQ(entry_at(made, "/dev/stdin")->text, "/proc/self/fd/0");
    EXPECT_EQ(entry_at(made, "/proc")->kind, entry_kind::directory);
    EXPECT_EQ(entry_at(made, "/etc/passwd")->kind, entry_kind::file);
    EXPECT_EQ(entry_at(made, "/sys"), nullptr);
    EXPECT_EQ(entry_at(made, "/root"), nullptr);
    EXPECT_EQ(entry_at(made, "/etc/machine-id"), nullptr);
    EXPECT_EQ(entry_at(made, "/etc/shadow"), nullptr);
}

TEST(Plan, EverySourceIsPinned) {
    const folder place;
    place.directory("a");
    for (const auto& entry : planned(wish_for({read(place / "a")})).tree) {
        if (entry.kind != entry_kind::bind && entry.kind != entry_kind::device) continue;
        ASSERT_TRUE(entry.pin) << entry.path;
        EXPECT_EQ(sys::inspect(entry.pin).value().identity, entry.identity) << entry.path;
    }
}

TEST(Plan, AGrantKeepsItsOwnNameAndItsAccess) {
    const folder place;
    place.file("file");
    place.directory("directory");
    EXPECT_THAT(lines(planned(wish_for({write(place / "file"), read(place / "directory")}))),
                ElementsAre("asked bind read " + (place / "directory"),
                            "asked bind write " + (place / "file")));
}

TEST(Plan, TheWorkspaceIsWritableAndWhereTheAgentStarts) {
    const folder place;
    auto wish = wish_for({});
    place.directory("real");
    place.link("link", "real");
    wish.workspace = place / "link";
    const auto made = planned(wish);
    EXPECT_TRUE(made.has_workspace);
    EXPECT_EQ(made.work_directory, place / "real");
    EXPECT_THAT(lines(made), ElementsAre("asked link read " + (place / "link") + " -> real",
                                         "asked bind write " + (place / "real")));
}

TEST(Plan, AWorkspaceThatIsNoDirectoryIsRefused) {
    const folder place;
    auto wish = wish_for({});
    wish.workspace = place.file("file");
    const auto problem = problem_of(wish);
    EXPECT_EQ(problem.code, errc::invalid_input);
    EXPECT_EQ(problem.detail, "--workspace " + (place / "file") + ": is not a directory");
    wish.workspace = place.path();
    EXPECT_TRUE(make_plan(wish).has_value());
}

// --- the order of the flags

// The wish whose flags stand in the order that the keys give; the same flags whatever the keys.
auto shuffled(const folder& place, const std::vector<int>& keys) -> profile {
    struct flag {
        int key;
        std::size_t place;
        std::function<void(profile&)> put;
    };
    std::vector<flag> flags;
    const auto add = [&](std::function<void(profile&)> put) {
        const auto at = flags.size();
        flags.push_back({at < keys.size() ? keys[at] : 0, at, std::move(put)});
    };
    for (const auto* path : {"a", "b-x", "b/in", "link/c", "d/e/f/file"})
        add([path, &place](profile& p) { p.grants.push_back(read(place / path)); });
    for (const auto* path : {"w", "w-x", "v/deep", "chain/y"})
        add([path, &place](profile& p) { p.grants.push_back(write(place / path)); });
    for (const auto* path : {"w/secret", "w/secret/inner", "a/x", "w/alias"})
        add([path, &place](profile& p) { p.hidden.push_back(place / path); });
    // Keys may be equal; clang refuses what libstdc++ makes a stable sort of.
    std::ranges::sort(flags, {}, [](const flag& f) { return std::pair{f.key, f.place}; });
    profile out;
    out.argv = {"true"};
    out.workspace = place / "ws";
    for (const auto& f : flags) f.put(out);
    return out;
}

void fill(const folder& place) {
    for (const auto* file : {"a/x", "a/y", "b-x/f", "b/in/f", "c0/c/f", "d/e/f/file",
                             "w/secret/inner/f", "w/other", "w-x/f", "v/deep/f", "y0/y/f", "ws/f"})
        place.file(file);
    place.link("link", "c0");
    place.link("chain", place / "chain2");
    place.link("chain2", "y0");
    place.link("w/alias", "other");
    place.fifo("w/secret/fifo");
    place.fifo("w/fifo");
}

RC_GTEST_PROP(PlanProperty, PermutedFlagsYieldTheSamePlan, (const std::vector<int>& keys)) {
    static const folder place;
    static const auto expected = [] {
        fill(place);
        return lines(planned(shuffled(place, {})), true);
    }();
    const auto made = make_plan(shuffled(place, keys));
    RC_ASSERT(made.has_value());
    RC_ASSERT(lines(*made, true) == expected);
}

TEST(Plan, TheShuffledWishIsTheOneThatIsMeant) {
    const folder place;
    fill(place);
    const auto made = planned(shuffled(place, {5, 4, 3, 2, 1, 9, 8, 7, 6}));
    expect_parents_first(made);
    EXPECT_THAT(
        lines(made),
        ElementsAre(
            "asked bind read " + (place / "a"), "hidden mask read " + (place / "a/x"),
            "asked bind read " + (place / "b/in"), "asked bind read " + (place / "b-x"),
            "asked bind read " + (place / "c0/c"),
            "asked link read " + (place / "chain") + " -> " + (place / "chain2"),
            "asked link read " + (place / "chain2") + " -> y0",
            "asked bind read " + (place / "d/e/f/file"),
            "asked link read " + (place / "link") + " -> c0",
            "asked bind write " + (place / "v/deep"), "asked bind write " + (place / "w"),
            "guarded mask read " + (place / "w/fifo"), "hidden mask read " + (place / "w/other"),
            "hidden mask read " + (place / "w/secret"), "asked bind write " + (place / "w-x"),
            "asked bind write " + (place / "ws"), "asked bind write " + (place / "y0/y")));
}

// --- what is refused

TEST(PlanRefusal, OverlappingGrantsAreRefusedWhateverTheirOrder) {
    const folder place;
    place.file("desk/inner/file");
    place.directory("desk-evil");
    place.link("link", "desk");
    for (const auto& grants : {std::vector{read(place / "desk"), write(place / "desk/inner")},
                               std::vector{write(place / "desk/inner"), read(place / "desk")},
                               std::vector{read(place / "desk"), read(place / "desk")},
                               std::vector{read(place / "desk"), read(place / "link")},
                               std::vector{read(place / "desk/inner/file"),
                                           read(place / "desk-evil"), read(place / "desk")}}) {
        const auto problem = problem_of(wish_for(grants));
        EXPECT_EQ(problem.code, errc::conflict);
        EXPECT_EQ(problem.step, "grant.check");
        EXPECT_THAT(problem.detail, HasSubstr("overlaps --"));
    }
    EXPECT_TRUE(
        make_plan(wish_for({read(place / "desk/inner"), write(place / "desk-evil")})).has_value());
}

TEST(PlanRefusal, TheWorkspaceOverlapsToo) {
    const folder place;
    place.directory("ws/inner");
    auto wish = wish_for({read(place / "ws/inner")});
    wish.workspace = place / "ws";
    EXPECT_THAT(problem_of(wish).detail,
                "--read " + (place / "ws/inner") + ": overlaps --workspace " + (place / "ws"));
}

TEST(PlanRefusal, TheWholeFileSystemCannotBeGranted) {
    const folder place;
    for (const auto& path :
         {std::string{"/"}, std::string{"//."}, std::string{"/usr/.."}, place.link("root", "/")}) {
        const auto problem = problem_of(wish_for({read(path)}));
        EXPECT_EQ(problem.code, errc::not_permitted) << path;
        EXPECT_THAT(problem.detail, HasSubstr("--read " + path + ": the whole file system"));
    }
}

TEST(PlanRefusal, NothingOfAClosedPlaceCanBeGranted) {
    const folder place;
    for (const auto& path : {std::string{"/proc"}, std::string{"/proc/self"},
                             std::string{"/proc/sys"}, std::string{"/dev"}, std::string{"/dev/shm"},
                             std::string{"/dev/null"}, place.link("processes", "/proc")}) {
        const auto problem = problem_of(wish_for({read(path)}));
        EXPECT_EQ(problem.code, errc::not_permitted) << path;
        EXPECT_THAT(problem.detail, HasSubstr("which Glove provides itself")) << path;
    }
}

TEST(PlanRefusal, ASharedPlaceCannotBeGrantedButWhatItHoldsCan) {
    for (const auto* path : {"/usr", "/etc", "/tmp", "/run", "/var/tmp", "/var", "/home"}) {
        if (!sys::exists(path)) continue;
        const auto problem = problem_of(wish_for({read(path)}));
        EXPECT_EQ(problem.code, errc::not_permitted) << path;
        EXPECT_THAT(problem.detail, HasSubstr("contains /")) << path;
    }
    EXPECT_TRUE(make_plan(wish_for({read("/usr/share")})).has_value());
    EXPECT_TRUE(make_plan(wish_for({read("/etc/passwd")})).has_value());
    const folder place; // below /tmp, usually
    EXPECT_TRUE(make_plan(wish_for({write(place.path())})).has_value());
}

TEST(PlanRefusal, SysCanBeReadAndNotWritten) {
    EXPECT_THAT(problem_of(wish_for({write("/sys")})).detail, HasSubstr("/sys can only be read"));
    EXPECT_EQ(problem_of(wish_for({write("/sys/kernel")})).remedy, "use --read /sys/kernel");
    EXPECT_TRUE(make_plan(wish_for({read("/sys")})).has_value());
    EXPECT_TRUE(make_plan(wish_for({read("/sys/kernel")})).has_value());
}

TEST(PlanRefusal, WhatIsMissingIsRefusedWithItsFlag) {
    const folder place;
    const auto problem = problem_of(wish_for({write(place / "missing")}));
    EXPECT_EQ(problem.code, errc::not_found);
    EXPECT_EQ(problem.detail, "--write " + (place / "missing"));
    auto wish = wish_for({}, {place / "missing"});
    EXPECT_EQ(problem_of(wish).detail, "--hide " + (place / "missing"));
    wish = wish_for({});
    wish.workspace = "";
    EXPECT_EQ(problem_of(wish).code, errc::not_found);
}

TEST(PlanRefusal, ASocketAFifoAndADeviceCannotBeGranted) {
    const folder place;
    const auto socket = test::bound_socket(place / "socket");
    place.fifo("fifo");
    place.link("link", "fifo");
    place.file("file");
    EXPECT_THAT(problem_of(wish_for({read(place / "socket")})).detail, HasSubstr("is a socket"));
    EXPECT_THAT(problem_of(wish_for({read(place / "fifo")})).detail, HasSubstr("is a FIFO"));
    EXPECT_THAT(problem_of(wish_for({read(place / "link")})).detail, HasSubstr("is a FIFO"));
    EXPECT_TRUE(make_plan(wish_for({read(place / "file")})).has_value());
    if (::geteuid() == 0) {
        ASSERT_EQ(::mknod((place / "device").c_str(), S_IFCHR | 0600, ::makedev(1, 3)), 0);
        EXPECT_THAT(problem_of(wish_for({read(place / "device")})).detail,
                    HasSubstr("is a device"));
    }
}

TEST(PlanRefusal, WithoutACommandThereIsNoPlan) {
    profile wish;
    EXPECT_EQ(problem_of(wish).step, "plan.command");
    wish.argv = {""};
    EXPECT_EQ(problem_of(wish).step, "plan.command");
    wish.argv = {"true"};
    EXPECT_TRUE(make_plan(wish).has_value());
}

// --- Glove's own files

auto controlled(std::vector<grant> grants, std::vector<std::string> control) -> profile {
    auto out = wish_for(std::move(grants));
    out.control_paths = std::move(control);
    return out;
}

TEST(PlanControl, AGrantThatHoldsAControlFileIsRefused) {
    const folder place;
    place.file("desk/log");
    place.link("link", "desk");
    place.directory("other");
    for (const auto& control : {place / "desk/log", place / "link/log", place / "desk"}) {
        const auto problem = problem_of(controlled({read(place / "desk")}, {control}));
        EXPECT_EQ(problem.code, errc::not_permitted) << control;
        EXPECT_THAT(problem.detail,
                    HasSubstr("--read " + (place / "desk") + ": would show Glove's"));
    }
    EXPECT_TRUE(make_plan(controlled({read(place / "other")}, {place / "desk/log"})).has_value());
}

TEST(PlanControl, AGrantInsideAControlDirectoryIsRefused) {
    const folder place;
    place.directory("state/audit");
    place.directory("state-evil");
    EXPECT_EQ(problem_of(controlled({read(place / "state/audit")}, {place / "state"})).code,
              errc::not_permitted);
    EXPECT_TRUE(make_plan(controlled({read(place / "state-evil")}, {place / "state"})).has_value());
}

TEST(PlanControl, AControlFileThatDoesNotExistYetCountsWhereItWillBe) {
    const folder place;
    place.directory("desk");
    place.directory("desk-evil");
    place.link("link", "desk");
    for (const auto& control :
         {place / "desk/new", place / "desk/new/deep/log", place / "link/new/log"})
        EXPECT_EQ(problem_of(controlled({write(place / "desk")}, {control})).code,
                  errc::not_permitted)
            << control;
    for (const auto& control : {place / "new", place / "desk-evil/new", place / "workx/new"})
        EXPECT_TRUE(make_plan(controlled({write(place / "desk")}, {control})).has_value())
            << control;
}

TEST(PlanControl, DotDotCannotLeadAControlFileThatDoesNotExistYetIntoAGrant) {
    const folder place;
    place.directory("desk");
    place.directory("other");
    const auto refused =
        problem_of(controlled({write(place / "desk")}, {place / "new/../desk/log"}));
    EXPECT_EQ(refused.code, errc::invalid_input);
    EXPECT_EQ(refused.step, "grant.control");
    EXPECT_EQ(problem_of(controlled({write(place / "desk")}, {place / "other/../desk/log"})).step,
              "grant.check");
    EXPECT_TRUE(
        make_plan(controlled({write(place / "desk")}, {place / "desk/../other/log"})).has_value());
}

// Who can replace a link on the way decides what Glove reads next.
TEST(PlanControl, ALinkOnTheWayToAControlFileCannotBeWritten) {
    const folder place;
    const auto real = place.file("real/glove/config.toml");
    const auto desk = place.directory("desk/inner");
    const auto link = place.link("desk/inner/settings", "../../real");
    const auto control = link + "/glove/config.toml";
    for (const auto& wide : {place / "desk", desk}) {
        EXPECT_THAT(problem_of(controlled({write(wide)}, {control})).detail,
                    HasSubstr("would show Glove's own files at " + link));
        EXPECT_TRUE(make_plan(controlled({write(wide)}, {real})).has_value());
        EXPECT_TRUE(make_plan(controlled({read(wide)}, {control})).has_value());
    }
    EXPECT_EQ(problem_of(controlled({read(place / "real")}, {control})).code, errc::not_permitted);
}

TEST(PlanControl, ALinkThatLeadsNowhereYetCountsWhereItLeads) {
    const folder place;
    const auto desk = place.directory("desk");
    const auto other = place.directory("other");
    const auto link = place.link("own/config.toml", "../desk/deep/config.toml");
    EXPECT_EQ(problem_of(controlled({write(desk)}, {link})).code, errc::not_permitted);
    EXPECT_EQ(problem_of(controlled({write(place / "own")}, {link})).code, errc::not_permitted);
    EXPECT_TRUE(make_plan(controlled({write(other)}, {link})).has_value());
    place.link("other/one", "two");
    place.link("other/two", place / "desk/new");
    EXPECT_EQ(problem_of(controlled({write(desk)}, {place / "other/one"})).code,
              errc::not_permitted);
}

// --- hiding

TEST(PlanHide, WhatIsInsideAGrantIsMasked) {
    const folder place;
    place.file("w/file");
    place.directory("w/directory");
    const auto made =
        planned(wish_for({write(place / "w")}, {place / "w/file", place / "w/directory"}));
    EXPECT_THAT(lines(made), ElementsAre("asked bind write " + (place / "w"),
                                         "hidden mask read " + (place / "w/directory"),
                                         "hidden mask read " + (place / "w/file")));
    EXPECT_EQ(entry_at(made, place / "w/file")->identity.type, ::mode_t{S_IFREG});
    EXPECT_EQ(entry_at(made, place / "w/directory")->identity.type, ::mode_t{S_IFDIR});
}

TEST(PlanHide, WhatIsOutsideEveryGrantIsRefused) {
    const folder place;
    place.directory("w");
    place.file("w-evil/file");
    const auto problem = problem_of(wish_for({write(place / "w")}, {place / "w-evil/file"}));
    EXPECT_EQ(problem.code, errc::invalid_input);
    EXPECT_THAT(problem.detail, HasSubstr("--hide " + (place / "w-evil/file") + ": is not inside"));
    EXPECT_EQ(problem_of(wish_for({write(place / "w")}, {"/etc/passwd"})).code,
              errc::invalid_input);
}

TEST(PlanHide, TheWholeOfAGrantIsRefused) {
    const folder place;
    place.directory("w");
    const auto problem = problem_of(wish_for({write(place / "w")}, {place / "w/."}));
    EXPECT_EQ(problem.code, errc::conflict);
    EXPECT_THAT(problem.detail, HasSubstr("hides the whole of --write " + (place / "w")));
}

TEST(PlanHide, ALinkMeansWhatItLeadsTo) {
    const folder place;
    place.file("w/secret");
    place.file("outside");
    place.link("w/link", "secret");
    place.link("w/out", "../outside");
    place.link("way", "w");
    for (const auto* hidden : {"w/link", "way/secret", "way/link"})
        EXPECT_THAT(lines(planned(wish_for({read(place / "w")}, {place / hidden}))),
                    ElementsAre("asked bind read " + (place / "w"),
                                "hidden mask read " + (place / "w/secret")))
            << hidden;
    EXPECT_EQ(problem_of(wish_for({read(place / "w")}, {place / "w/out"})).code,
              errc::invalid_input);
}

TEST(PlanHide, WhatLiesBelowAMaskNeedsNoMaskOfItsOwn) {
    const folder place;
    place.file("w/secret/deep/file");
    place.file("w/secret-x");
    place.fifo("w/secret/fifo");
    EXPECT_THAT(
        lines(
            planned(wish_for({read(place / "w")}, {place / "w/secret/deep/file", place / "w/secret",
                                                   place / "w/secret-x", place / "w/secret"}))),
        ElementsAre("asked bind read " + (place / "w"), "hidden mask read " + (place / "w/secret"),
                    "hidden mask read " + (place / "w/secret-x")));
}

TEST(PlanGuard, SocketsAndFifosInsideAGrantAreMasked) {
    const folder place;
    place.fifo("w/fifo");
    place.fifo("outside/fifo");
    place.directory("w/deep");
    const auto socket = test::bound_socket(place / "w/deep/socket");
    const auto made = planned(wish_for({write(place / "w")}));
    EXPECT_THAT(lines(made), ElementsAre("asked bind write " + (place / "w"),
                                         "guarded mask read " + (place / "w/deep/socket"),
                                         "guarded mask read " + (place / "w/fifo")));
    EXPECT_TRUE(made.guard_search_complete);
}

TEST(PlanGuard, ALargeGrantTellsThatTheSearchStopped) {
    const folder place;
    for (int i = 0; i < 1024; ++i) place.file("w/" + std::to_string(i));
    EXPECT_TRUE(planned(wish_for({read(place / "w")})).guard_search_complete);
    place.file("w/one-more");
    EXPECT_FALSE(planned(wish_for({read(place / "w")})).guard_search_complete);
}

// --- links

TEST(PlanLinks, ALinkOnTheWayIsThereUnlessAGrantHoldsIt) {
    const folder place;
    place.file("real/file");
    place.file("w/target");
    place.link("link", "real");
    place.link("w/inner", "target");
    EXPECT_THAT(lines(planned(wish_for({read(place / "link/file")}))),
                ElementsAre("asked link read " + (place / "link") + " -> real",
                            "asked bind read " + (place / "real/file")));
    // The way to w/target leads through w itself, which is granted by another flag.
    place.link("real/over", "../w/inner2");
    place.link("w/inner2", "../x");
    place.file("x");
    EXPECT_THAT(
        lines(planned(wish_for({write(place / "w"), read(place / "w/inner2")}))),
        ElementsAre("asked bind write " + (place / "w"), "asked bind read " + (place / "x")));
}

// --- hosts whose home or /tmp is a link

struct host : folder {
    host() {
        for (const auto* node : {"null", "zero", "full", "random", "urandom", "tty"})
            file("dev/" + std::string{node});
        directory("usr/bin");
        file("proc/self/mountinfo", "1 1 8:1 / / rw - ext4 /dev/disk rw\n");
    }
};

auto plan_on(const host& made_up, const profile& wish) -> std::string {
    return test::said_by([&] {
        test::enter_root(made_up.path());
        const auto made = make_plan(wish);
        if (!made) return made.error().detail;
        std::string out;
        for (const auto& entry : made->tree)
            if (entry.kind == entry_kind::scratch || entry.origin == origin::asked)
                out += line_of(entry) + "\n";
        return out;
    });
}

TEST(PlanOnOtherHosts, WhereHomeIsALinkThePrivateHomeGoesWhereItLeads) {
    for (const auto* target : {"/data/home", "data/home", "../data/./home"}) {
        const host linked;
        linked.directory("data/home/user/project");
        linked.link("home", target);
        EXPECT_EQ(plan_on(linked, wish_for({write("/home/user/project")})),
                  "managed scratch write /data/home/agent\n"
                  "asked bind write /data/home/user/project\n"
                  "managed scratch write /dev/shm\n"
                  "asked link read /home -> " +
                      std::string{target} +
                      "\n"
                      "managed scratch write /run\n"
                      "managed scratch write /tmp\n"
                      "managed scratch write /var/tmp\n");
    }
}

TEST(PlanOnOtherHosts, WhereTmpIsALinkThePrivateTmpGoesWhereItLeads) {
    const host linked;
    linked.directory("private/tmp/desk");
    linked.link("tmp", "private/tmp");
    const auto made = plan_on(linked, wish_for({read("/tmp/desk")}));
    EXPECT_THAT(made, HasSubstr("managed scratch write /private/tmp\n"
                                "asked bind read /private/tmp/desk\n"));
    EXPECT_THAT(made, HasSubstr("asked link read /tmp -> private/tmp\n"));
    EXPECT_THAT(made, Not(HasSubstr("scratch write /tmp\n")));
}

TEST(PlanOnOtherHosts, AHomeThatNoGrantPassesThroughIsMadeAsUsual) {
    const host linked;
    linked.directory("data/home/user");
    linked.directory("desk");
    linked.link("home", "/data/home");
    EXPECT_THAT(plan_on(linked, wish_for({read("/desk")})),
                HasSubstr("managed scratch write /home/agent\n"));
}

TEST(PlanOnOtherHosts, WhatALinkedHomeLeadsToCannotBeGrantedWhole) {
    const host linked;
    linked.directory("data/home/user");
    linked.link("home", "/data/home");
    EXPECT_THAT(plan_on(linked, wish_for({read("/home")})),
                HasSubstr("contains /data/home/agent, which Glove provides itself as /home/agent"));
}

TEST(PlanOnOtherHosts, WithoutBashTheShellIsSh) {
    const auto shell = [](const host& on) {
        return test::said_by([&] {
            test::enter_root(on.path());
            const auto made = make_plan(wish_for({}));
            if (!made) return made.error().detail;
            for (const auto& variable : made->environment)
                if (variable.starts_with("SHELL=")) return variable;
            return std::string{};
        });
    };
    const host bare;
    EXPECT_EQ(shell(bare), "SHELL=/bin/sh");
    const host with_bash;
    with_bash.file("bin/bash");
    EXPECT_EQ(shell(with_bash), "SHELL=/bin/bash");
}

TEST(PlanOnOtherHosts, WithoutADeviceNodeThereIsNoPlan) {
    const host bare;
    std::filesystem::remove(bare / "dev/urandom");
    EXPECT_EQ(plan_on(bare, wish_for({})), "/dev/urandom");
}

// --- command and limits

TEST(Plan, AProgramIsLookedForAlongTheAgentsOwnPath) {
    auto wish = wish_for({});
    wish.argv = {"tool", "--help"};
    auto made = planned(wish);
    EXPECT_EQ(made.argv, wish.argv);
    EXPECT_THAT(made.programs, ElementsAre("/usr/local/bin/tool", "/usr/bin/tool", "/bin/tool",
                                           "/usr/local/sbin/tool", "/usr/sbin/tool", "/sbin/tool"));
    for (const auto* exact : {"./tool", "bin/tool", "/opt/tool"}) {
        wish.argv = {exact};
        EXPECT_THAT(planned(wish).programs, ElementsAre(exact));
    }
}

TEST(Plan, TheUserIsTheCaller) {
    const auto made = planned(wish_for({}));
    EXPECT_EQ(made.user.uid, ::geteuid());
    EXPECT_EQ(made.user.gid, ::getegid());
}

TEST(Plan, RoomForPrivateFilesIsNeverNone) {
    auto wish = wish_for({});
    EXPECT_GE(planned(wish).scratch.bytes, 48UL << 20U);
    wish.limits.scratch_bytes = 1;
    EXPECT_EQ(planned(wish).scratch.bytes, 1U);
    EXPECT_GT(planned(wish).scratch.inodes, 0U);
    wish.limits.scratch_bytes = 0; // tmpfs takes it for "as much as you like"
    EXPECT_EQ(problem_of(wish).step, "plan.scratch");
}

TEST(Plan, ABoundOnDiskSpaceIsOfAllThatCanBeWritten) {
    auto wish = wish_for({});
    wish.limits.disk_bytes = (4UL << 20U) + 1; // whole pages of every machine
    EXPECT_EQ(planned(wish).scratch.bytes, 4UL << 20U);
    wish.limits.scratch_bytes = 1UL << 20U;
    EXPECT_EQ(planned(wish).scratch.bytes, 1UL << 20U);
    wish.limits.scratch_bytes = 8UL << 20U;
    EXPECT_EQ(planned(wish).scratch.bytes, 4UL << 20U);
}

TEST(Plan, WithLessThanAMebibyteNothingStarts) {
    constexpr std::uint64_t least = 1UL << 20U;
    auto wish = wish_for({});
    wish.limits.memory_bytes = wish.limits.disk_bytes = least;
    EXPECT_EQ(planned(wish).scratch.bytes, least);
    wish.limits.memory_bytes = least - 1;
    EXPECT_EQ(problem_of(wish).step, "plan.limits");
    wish.limits.memory_bytes = least;
    wish.limits.disk_bytes = least - 1;
    EXPECT_EQ(problem_of(wish).step, "plan.limits");
}

TEST(DefaultScratch, ItIsAtMostAQuarterOfMemoryWithItsInodes) {
    for (std::uint64_t ram = 256UL << 20U; ram <= 1UL << 40U; ram += ram / 7) {
        const auto budget = default_scratch(ram);
        EXPECT_LE(budget.bytes + budget.inodes * 1536, ram / 4) << ram;
        EXPECT_GE(budget.bytes, ram / 6) << ram;
        EXPECT_GE(budget.inodes, 10'922U) << ram;
    }
}

TEST(DefaultScratch, ASmallOrUnknownMemoryStillGivesRoomAndABound) {
    for (const std::uint64_t ram : {0UL, 1UL, 64UL << 20U, (256UL << 20U) - 1}) {
        EXPECT_EQ(default_scratch(ram).bytes, 48UL << 20U) << ram;
        EXPECT_EQ(default_scratch(ram).inodes, 10'922U) << ram;
    }
}

} // namespace
