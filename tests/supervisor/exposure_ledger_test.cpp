// The state machine of exposures: requests, replays, generations, history, and use by plans.
#include "exposure_scene.hpp"
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <support/folder.hpp>

namespace {

using namespace glove;
using namespace glove::supervisor;
using test::digits;
using test::folder;
using test::mib;

constexpr std::uint64_t start = 1'000'000;

template<class T> auto said(const result<T>& out) -> std::string {
    return out ? "" : std::string{out.error().step} + " " + out.error().detail;
}

// A ledger with the journal that its owner would have, and a policy over a folder.
class Ledger : public testing::Test {
protected:
    Ledger() {
        place.directory("root/proj");
        place.directory("root/other");
        rules = test::usual_exposure_rules(place / "root");
    }
    [[nodiscard]] auto policy() const -> exposure_policy {
        return exposure_policy::freeze(rules).value();
    }
    [[nodiscard]] auto wanted(const std::string& id = "proj") const -> create_exposure {
        auto out = test::usual_create(place / "root/proj");
        out.exposure_id = id;
        return out;
    }
    auto carry_out(const result<exposure_decision>& decision) -> result<exposure_key> {
        if (!decision) return std::unexpected(decision.error());
        if (decision->record) {
            GLOVE_CHECK(ledger.apply(*decision->record));
            journal.push_back(encode(*decision->record).value());
        }
        return decision->subject;
    }
    auto create(const std::string& request, const create_exposure& what, std::uint64_t now = start)
        -> result<exposure_key> {
        return carry_out(decide_create(ledger, policy(), request, what, now));
    }
    auto revoke(const std::string& request, const revoke_exposure& what, std::uint64_t now = start)
        -> result<exposure_key> {
        return carry_out(decide_revoke(ledger, request, what, now));
    }
    [[nodiscard]] auto replayed() const -> result<exposure_ledger> {
        exposure_ledger out;
        for (const auto& line : journal) {
            GLOVE_TRY(const auto record, decode_exposure_record(line));
            GLOVE_CHECK(out.apply(record));
        }
        return out;
    }
    [[nodiscard]] auto shown(std::uint64_t now = start) const -> std::vector<catalog_entry> {
        return catalog(ledger, policy(), now);
    }
    folder place;
    exposure_rules rules;
    exposure_ledger ledger;
    std::vector<std::string> journal;
};

TEST_F(Ledger, ARequestMakesAGenerationThatIsShown) {
    EXPECT_EQ(create("init-proj", wanted()).value(), (exposure_key{"proj", 1}));
    const auto entries = shown();
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].exposure_id, "proj");
    EXPECT_EQ(entries[0].generation, 1U);
    EXPECT_EQ(entries[0].expires_at_ms, start + 3'600'000);
    EXPECT_EQ(entries[0].state, exposure_state::active);
    EXPECT_EQ(entries[0].scope_digest,
              scope_digest(ledger.find({"proj", 1})->created.descriptor).value());
    EXPECT_TRUE(encode(entries[0]));
    EXPECT_EQ(encode(entries[0])->find(place.path()), std::string::npos);
}

TEST_F(Ledger, TheScopeIsTheOneThatOthersCompute) {
    const auto record =
        ledger.next_create("init-proj", test::usual_create(), test::made_up_source(), 1000);
    const auto& made = std::get<exposure_created>(record->fact);
    EXPECT_EQ(made.descriptor.scope_digest,
              "740f44b5523791811398674681d6a167047a61f03f630af4a138be0fbb73ecf9");
    EXPECT_EQ(made.request_digest,
              "e474349675d96f614f542743157d40344b720225990ac6499a58d35e7a3a0dc0");
}

// --- replay of requests ---

TEST_F(Ledger, ARequestThatComesAgainChangesNothing) {
    ASSERT_TRUE(create("k", wanted()));
    const auto before = ledger.snapshot();
    EXPECT_EQ(create("k", wanted()).value(), (exposure_key{"proj", 1}));
    // Later, when it has expired, and whatever the policy says by then.
    const auto late = start + 3'600'000;
    EXPECT_EQ(create("k", wanted(), late).value(), (exposure_key{"proj", 1}));
    rules.roots[0].root_id = "elsewhere";
    EXPECT_EQ(create("k", wanted(), late).value(), (exposure_key{"proj", 1}));
    std::filesystem::remove(place / "root/proj");
    EXPECT_EQ(create("k", wanted(), late).value(), (exposure_key{"proj", 1}));
    EXPECT_EQ(ledger.snapshot(), before);
    EXPECT_EQ(journal.size(), 1U);
}

TEST_F(Ledger, AListInAnotherOrderIsTheSameRequest) {
    auto what = wanted();
    what.allowed_modes.push_back(test::ephemeral_mode());
    what.allowed_runtime_template_ids.emplace_back("pi-safe");
    ASSERT_TRUE(create("k", what));
    std::reverse(what.allowed_modes.begin(), what.allowed_modes.end());
    std::reverse(what.allowed_runtime_template_ids.begin(),
                 what.allowed_runtime_template_ids.end());
    EXPECT_EQ(create("k", what).value().generation, 1U);
}

TEST_F(Ledger, ARequestIdMeansOneRequest) {
    ASSERT_TRUE(create("k", wanted()));
    const std::string no = "exposure.request the request id was used for another request";
    auto other = wanted();
    ++other.ttl_secs;
    EXPECT_EQ(said(create("k", other)), no);
    EXPECT_EQ(create("k", other).error().code, errc::conflict);
    EXPECT_EQ(said(revoke("k", {"proj", 1})), no); // one name space for both
    ASSERT_TRUE(revoke("r", {"proj", 1}));
    EXPECT_EQ(said(create("r", wanted("new"))), no);
    EXPECT_EQ(revoke("r", {"proj", 1}).value(), (exposure_key{"proj", 1}));
    EXPECT_EQ(said(revoke("r", {"proj", 2})), no);
    for (const auto& bad : {std::string{}, std::string(129, 'a'), std::string{"a/b"}})
        EXPECT_EQ(said(create(bad, wanted("new"))).substr(0, 16), "exposure.request");
    EXPECT_TRUE(create(std::string(128, 'a'), wanted("new")));
}

TEST_F(Ledger, WhatWasRefusedMayBeAskedAgain) {
    auto what = wanted();
    what.host_path = place / "root/later";
    EXPECT_EQ(said(create("k", what)), "source.open it does not exist");
    EXPECT_TRUE(journal.empty());
    place.directory("root/later");
    EXPECT_TRUE(create("k", what));
}

// --- generations ---

TEST_F(Ledger, AGenerationEndsBeforeTheNextOne) {
    ASSERT_TRUE(create("a", wanted()));
    EXPECT_EQ(said(create("b", wanted())),
              "exposure.active generation 1 of the exposure is active");
    const auto end = start + 3'600'000;
    EXPECT_EQ(create("b", wanted(), end - 1).error().code, errc::conflict);
    EXPECT_EQ(create("b", wanted(), end).value().generation, 2U);
    EXPECT_EQ(create("c", wanted(), end).error().code, errc::conflict);
    ASSERT_TRUE(revoke("r", {"proj", 2}, end));
    EXPECT_EQ(create("c", wanted(), end).value().generation, 3U);
    EXPECT_EQ(create("d", wanted("other"), end).value().generation, 1U);
    EXPECT_EQ(shown(end).size(), 2U); // the newest of each
    EXPECT_EQ(shown(end)[1].generation, 3U);
}

TEST_F(Ledger, OnlyTheNewestGenerationIsRevokedAndOnce) {
    EXPECT_EQ(said(revoke("r", {"proj", 1})), "exposure.unknown there is no such generation");
    ASSERT_TRUE(create("a", wanted()));
    EXPECT_EQ(said(revoke("r", {"proj", 2})), "exposure.unknown there is no such generation");
    ASSERT_TRUE(revoke("r", {"proj", 1}));
    EXPECT_EQ(said(revoke("s", {"proj", 1})), "exposure.revoked it is revoked already");
    EXPECT_EQ(shown()[0].state, exposure_state::revoked);
    const auto end = start + 3'600'000;
    ASSERT_TRUE(create("b", wanted(), start));
    EXPECT_TRUE(
        revoke("t", {"proj", 2}, end)); // expired: revoked for good, whatever the clock does
    EXPECT_EQ(shown(start)[0].state, exposure_state::revoked);
    ASSERT_TRUE(create("c", wanted(), start));
    ASSERT_TRUE(create("d", wanted(), end));
    EXPECT_EQ(said(revoke("u", {"proj", 3}, end)),
              "exposure.older it is not the newest generation");
}

TEST_F(Ledger, TimeAtTheEndOfNumbersDoesNotWrap) {
    rules.roots[0].max_ttl_secs = UINT64_MAX;
    auto what = wanted();
    what.ttl_secs = UINT64_MAX / 1000;
    EXPECT_EQ(said(create("k", what, 1000)), "exposure.ttl $.ttl_secs is beyond the end of time");
    EXPECT_EQ(said(create("k", what, 616)), "exposure.ttl $.ttl_secs is beyond the end of time");
    EXPECT_TRUE(create("k", what, 615)); // 2^64 - 1 is 615 beyond a multiple of 1000
    what = wanted("other");
    what.ttl_secs = UINT64_MAX;
    EXPECT_FALSE(create("l", what, 0));
}

TEST_F(Ledger, AtMost1024AreKeptAndTheDeadMakeRoom) {
    const auto source = test::made_up_source();
    const auto add = [&](std::size_t i, std::uint64_t now) {
        auto what = test::usual_create();
        what.exposure_id = "e" + std::to_string(i);
        auto record = ledger.next_create("k" + std::to_string(i), what, source, now);
        return record ? ledger.apply(*record) : result<>{std::unexpected(record.error())};
    };
    for (std::size_t i = 0; i < 1023; ++i) ASSERT_TRUE(add(i, start + i));
    EXPECT_FALSE(ledger.full());
    ASSERT_TRUE(add(1023, start + 1023));
    EXPECT_TRUE(ledger.full());
    EXPECT_EQ(said(add(1024, start)), "exposure.capacity 1024 exposures are kept");

    auto living = ledger;
    living.forget_dead(start); // all live
    EXPECT_TRUE(living.full());
    // The first hundred have expired.
    const auto later = start + 3'600'000 + 99;
    ledger.forget_dead(later);
    EXPECT_EQ(ledger.snapshot().kept.size(), 924U);
    EXPECT_EQ(ledger.find({"e99", 1}), nullptr);
    EXPECT_NE(ledger.find({"e100", 1}), nullptr);
    // A generation is never given out twice, also of a name that is forgotten.
    auto what = test::usual_create();
    what.exposure_id = "e5";
    const auto record = ledger.next_create("again", what, source, later);
    EXPECT_EQ(std::get<exposure_created>(record->fact).descriptor.generation, 2U);
    ASSERT_TRUE(ledger.apply(*record));
    // When all are dead, the younger half stays, for those who ask again.
    ledger.forget_dead(later + 10'000'000);
    EXPECT_EQ(ledger.snapshot().kept.size(), 512U);
    EXPECT_EQ(ledger.replayed("k1023", "x").error().code, errc::conflict);
    EXPECT_EQ(ledger.replayed("k5", "x").value(), std::nullopt);
}

// --- history ---

TEST_F(Ledger, HistoryGivesTheSameLedger) {
    ASSERT_TRUE(create("a", wanted()));
    ASSERT_TRUE(create("b", wanted("other")));
    ASSERT_TRUE(revoke("c", {"proj", 1}));
    ASSERT_TRUE(create("d", wanted()));
    const auto again = replayed();
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_EQ(again->snapshot(), ledger.snapshot());
    EXPECT_EQ(exposure_ledger::restore(ledger.snapshot())->snapshot(), ledger.snapshot());
}

TEST_F(Ledger, HistoryIsReplayedAlthoughThePolicyIsTighter) {
    auto what = wanted();
    what.allowed_modes.push_back(test::ephemeral_mode());
    ASSERT_TRUE(create("a", what));
    rules.roots[0].root_id = "renamed";
    rules.roots[0].allowed_modes = {test::read_mode()};
    rules.roots[0].allowed_runtime_template_ids = {"other"};
    EXPECT_EQ(replayed()->snapshot(), ledger.snapshot());
    EXPECT_EQ(shown()[0].state, exposure_state::revoked); // it is not offered, either
    rules = test::usual_exposure_rules(place / "root");
    EXPECT_EQ(shown()[0].state, exposure_state::active);
}

TEST_F(Ledger, AChangedHistoryIsRefusedWithTheNumberOfItsRecord) {
    ASSERT_TRUE(create("a", wanted()));
    ASSERT_TRUE(revoke("b", {"proj", 1}));
    ASSERT_TRUE(create("c", wanted()));
    const auto good = journal;
    const auto refused = [&](std::vector<std::size_t> order) {
        journal.clear();
        for (const auto i : order) journal.push_back(good[i]);
        return said(replayed());
    };
    EXPECT_EQ(refused({0, 1, 2}), "");
    EXPECT_EQ(refused({0, 1}), "");
    EXPECT_EQ(refused({0, 0}), "exposure.replay record 1: record 2 was to come");
    EXPECT_EQ(refused({0, 2}), "exposure.replay record 3: record 2 was to come");
    EXPECT_EQ(refused({1}), "exposure.replay record 2: record 1 was to come");
    EXPECT_EQ(refused({0, 1, 2, 2}), "exposure.replay record 3: record 4 was to come");
}

TEST_F(Ledger, ARecordMustFollowFromWhatIsThere) {
    ASSERT_TRUE(create("a", wanted()));
    const auto& made = ledger.find({"proj", 1})->created;
    const auto head = ledger.snapshot().head_hash;
    const auto next = [&](std::variant<exposure_created, exposure_revoked> fact) {
        exposure_record record{2, std::move(fact), head, {}};
        record.record_hash = record_hash(record).value();
        return record;
    };
    const auto revocation = [&](std::string id, std::string exposure, std::uint64_t generation) {
        return exposure_revoked{id,
                                request_digest(id, revoke_exposure{exposure, generation}).value(),
                                exposure, generation, start};
    };
    const auto refused = [&](const exposure_record& record) {
        auto trial = ledger;
        return said(trial.apply(record));
    };
    const std::string at = "exposure.replay record 2: ";
    EXPECT_EQ(refused(next(revocation("b", "proj", 1))), "");
    EXPECT_EQ(refused(next(revocation("a", "proj", 1))), at + "its request id was used before");
    EXPECT_EQ(refused(next(revocation("b", "proj", 2))), at + "it revokes what is not there");
    auto forged = revocation("b", "proj", 1);
    forged.request_digest = digits('0');
    EXPECT_EQ(refused(next(forged)), at + "its request digest is not that of its request");

    auto second = made;
    second.request_id = "b";
    EXPECT_EQ(refused(next(second)), at + "its generation does not follow");
    second.descriptor.generation = 2;
    EXPECT_EQ(refused(next(second)), at + "the generation before it was active");
    ++second.descriptor.expires_at_ms;
    EXPECT_EQ(refused(next(second)), at + "its scope digest is not that of its members");
    second.descriptor.scope_digest = scope_digest(second.descriptor).value();
    EXPECT_EQ(refused(next(second)), "");
    auto unchained = next(second);
    unchained.previous_hash = digits('0');
    EXPECT_EQ(refused(unchained), at + "it does not follow the one before it");
    auto unhashed = next(second);
    unhashed.record_hash = digits('0');
    EXPECT_EQ(refused(unhashed), at + "it is not what its hash says");
}

TEST_F(Ledger, ABadSnapshotIsRefused) {
    ASSERT_TRUE(create("a", wanted()));
    ASSERT_TRUE(create("b", wanted("other")));
    ASSERT_TRUE(revoke("c", {"proj", 1}));
    const auto good = ledger.snapshot();
    const auto refused = [&](const std::function<void(exposure_snapshot&)>& edit) {
        auto other = good;
        edit(other);
        return said(exposure_ledger::restore(other)).substr(0, 17);
    };
    EXPECT_EQ(refused([](auto&) {}), "");
    const std::string no = "exposure.snapshot";
    EXPECT_EQ(refused([](auto& s) { std::swap(s.kept[0], s.kept[1]); }), no);
    EXPECT_EQ(refused([](auto& s) { s.kept[1] = s.kept[0]; }), no);
    EXPECT_EQ(refused([](auto& s) { s.sequence = 1; }), no);
    EXPECT_EQ(refused([](auto& s) { ++s.kept[0].created.descriptor.expires_at_ms; }), no);
    EXPECT_EQ(refused([](auto& s) { s.kept[0].revoked->exposure_id = "x"; }), no);
    EXPECT_EQ(refused([](auto& s) { s.kept[0].revoked->request_id = "a"; }), no);
    EXPECT_EQ(refused([](auto& s) { s.kept[1].created.request_id = "a"; }), no);
    EXPECT_EQ(refused([](auto& s) { s.kept.resize(1025, s.kept[0]); }), no);
}

// Whatever is asked for in whatever order: history gives the same ledger, at most one generation
// of a name is active, and a request that comes again changes nothing.
TEST_F(Ledger, HoldsItsPromisesInAnyOrderOfRequests) {
    const auto source = test::made_up_source();
    EXPECT_TRUE(rc::check([&] {
        exposure_ledger lived;
        exposure_ledger followed;
        std::uint64_t now = start;
        std::map<std::string, std::uint64_t> last;
        for (int i = 0; i < 40; ++i) {
            now += *rc::gen::inRange<std::uint64_t>(0, 3000);
            const std::string id{static_cast<char>('a' + *rc::gen::inRange(0, 3))};
            const auto key = "k" + std::to_string(*rc::gen::inRange(0, 30));
            auto what = test::usual_create();
            what.exposure_id = id;
            what.ttl_secs = 2;
            const auto record =
                *rc::gen::arbitrary<bool>()
                    ? lived.next_create(key, what, source, now)
                    : lived.next_revoke(key, {id, *rc::gen::inRange<std::uint64_t>(1, 4)}, now);
            if (!record) continue;
            const auto before = lived.snapshot();
            if (!lived.apply(*record)) { // the id was used
                RC_ASSERT(lived.snapshot() == before);
                continue;
            }
            RC_ASSERT(followed.apply(decode_exposure_record(encode(*record).value()).value())
                          .has_value());
            RC_ASSERT(lived.snapshot() == followed.snapshot());
            RC_ASSERT(!lived.apply(*record).has_value());
            if (const auto* made = std::get_if<exposure_created>(&record->fact)) {
                RC_ASSERT(made->descriptor.generation == last[id] + 1);
                last[id] = made->descriptor.generation;
            }
            std::map<std::string, int> active;
            for (const auto& kept : lived.snapshot().kept)
                if (state_of(kept, now) == exposure_state::active)
                    RC_ASSERT(++active[kept.created.descriptor.exposure_id] == 1);
        }
    }));
}

// --- use ---

class Use : public Ledger {
protected:
    Use() {
        auto what = wanted();
        what.allowed_modes = {test::read_mode(), test::ephemeral_mode(mib)};
        test::prepared(create("a", what).has_value(), "create");
        grant = test::project_grant();
        grant.scope_digest = ledger.find({"proj", 1})->created.descriptor.scope_digest;
    }
    [[nodiscard]] auto used(std::uint64_t now = start,
                            std::string_view template_id = "codex-safe") const -> std::string {
        return said(use_exposure(ledger, policy(), grant, template_id, now));
    }
    exposure_grant grant;
};

TEST_F(Use, AnActiveGenerationIsOpened) {
    const auto out = use_exposure(ledger, policy(), grant, "codex-safe", start + 1);
    ASSERT_TRUE(out) << out.error().detail;
    EXPECT_EQ(out->remaining_ms, 3'599'999U);
    EXPECT_EQ(out->kept, ledger.find({"proj", 1}));
    struct ::stat found{};
    ASSERT_EQ(::stat((place / "root/proj").c_str(), &found), 0);
    EXPECT_EQ(out->source.facts.identity.inode, found.st_ino);
}

TEST_F(Use, AGrantMeansOneGenerationExactly) {
    grant.generation = 2;
    EXPECT_EQ(used(), "exposure.unknown there is no such generation");
    grant.generation = 1;
    grant.scope_digest = digits('0');
    EXPECT_EQ(used(), "exposure.scope scope_digest is not that of the generation");
}

TEST_F(Use, AnEndedGenerationIsNotUsed) {
    EXPECT_EQ(used(start + 3'599'999), "");
    EXPECT_EQ(used(start + 3'600'000), "exposure.state the generation is expired");
    ASSERT_TRUE(revoke("r", {"proj", 1}));
    EXPECT_EQ(used(), "exposure.state the generation is revoked");
}

TEST_F(Use, AnOlderGenerationDoesNotComeBackWhenTheClockDoes) {
    ASSERT_TRUE(create("b", wanted(), start + 3'600'000));
    EXPECT_EQ(used(start), "exposure.state the generation is not the newest one");
}

TEST_F(Use, AGrantStaysWithinWhatWasExposed) {
    EXPECT_EQ(used(start, "pi-safe"),
              "exposure.template the exposure is not for the plan's template");
    const auto with = [&](const exposure_mode& mode) {
        grant.access = mode.access;
        grant.materialization = mode.materialization;
        grant.max_bytes = mode.max_bytes;
        grant.cleanup_policy = mode.cleanup_policy;
        return used();
    };
    const std::string no = "exposure.mode the exposure does not allow the mode";
    EXPECT_EQ(with(test::ephemeral_mode(mib)), "");
    EXPECT_EQ(with(test::ephemeral_mode(1)), "");
    EXPECT_EQ(with(test::ephemeral_mode(mib + 1)), no);
    EXPECT_EQ(with(test::ephemeral_mode(0)), no);
    EXPECT_EQ(with(test::retained_mode()), no);
    auto other = test::read_mode();
    other.max_bytes = 1;
    EXPECT_EQ(with(other), no);
    other = test::read_mode();
    other.cleanup_policy = cleanup_kind::remove;
    EXPECT_EQ(with(other), no);
    EXPECT_EQ(with(test::read_mode()), "");
}

TEST_F(Use, APolicyThatIsTighterNowIsAskedAgain) {
    rules.roots[0].allowed_modes = {test::read_mode()};
    EXPECT_EQ(used(), "exposure.mode $.allowed_modes[1] is more than the root allows");
    rules = test::usual_exposure_rules(place / "root");
    rules.roots[0].allowed_runtime_template_ids = {"pi-safe"};
    EXPECT_EQ(used().substr(0, 17), "exposure.template");
    rules = test::usual_exposure_rules(place / "root");
    rules.roots[0].root_id = "x";
    EXPECT_EQ(used(), "exposure.root $.root_id is not a root of the policy");
    rules = test::usual_exposure_rules(place / "root");
    rules.roots[0].max_ttl_secs = 1; // of new ones
    EXPECT_EQ(used(), "");
}

TEST_F(Use, AnotherSourceUnderTheSameNameIsNotTheSource) {
    const auto path = place / "root/proj";
    const auto state = [&] { return shown()[0].state; };
    const std::string other = "exposure.source the source is not what it was";
    place.file("root/proj/inside", "text"); // contents may change
    EXPECT_EQ(used(), "");
    std::filesystem::rename(path, path + ".old");
    EXPECT_EQ(used(), "source.open it does not exist");
    EXPECT_EQ(state(), exposure_state::revoked);
    place.directory("root/proj");
    EXPECT_EQ(used(), other);
    EXPECT_EQ(state(), exposure_state::revoked);
    std::filesystem::remove(path);
    place.link("root/proj", path + ".old");
    EXPECT_EQ(used(), "source.open it or a component of it is a symbolic link");
    std::filesystem::remove(path);
    std::filesystem::rename(path + ".old", path);
    EXPECT_EQ(used(), "");
    EXPECT_EQ(state(), exposure_state::active);
    ASSERT_EQ(::chmod(path.c_str(), 0700), 0); // its mode is part of what it is
    EXPECT_EQ(used(), other);
    EXPECT_EQ(state(), exposure_state::revoked);
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    EXPECT_EQ(used(), "");
}

} // namespace
