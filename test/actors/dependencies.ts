/** What behaviors need, where a test performs nothing or says itself what is done. */
import { Effect } from "effect"
import type { OwnedStores } from "../../actors/account/owned-resources.ts"
import { type Dependencies, linksUnder } from "../../actors/index.ts"
import { Keyring } from "../../actors/keyring.ts"
import type { Outbound } from "../../actors/outbound/protocol.ts"
import { Vapid } from "../../actors/registration/web-push.ts"
import { notificationDocuments } from "../../http/documents.ts"
import { BlobMissing, type Peers, StorageUnavailable } from "../../runtime/index.ts"

/** Peers of an actor that is alone: whatever it asks is not there. */
export const noPeers: Peers = {
  ask: () => Effect.succeed({ _tag: "Refused", reason: "NotFound" }),
  read: () => Effect.succeed([])
}

/** A keyring of a process that has no file of keys: all of them have the same key. */
export const makeTestKeyring = (): Keyring => new Keyring([Buffer.alloc(32, "test")])

/** The key of stored secrets of every test that has no file of keys. */
export const testKeyring = makeTestKeyring()

/** The pair of keys of every test that pushes to browsers. */
export const testVapid = new Vapid(["mailto:admin@example.org"])

/** Its public key, by which browsers subscribe. */
export const testApplicationServerKey = testVapid.useServiceKey("the key of these tests")

/** Nothing outside answers. */
export const noOutbound: Outbound = {
  post: () => Effect.succeed({ _tag: "RetryableFailure", problem: "connection refused" }),
  get: () => Effect.succeed({ _tag: "RetryableFailure", problem: "connection refused" }),
  head: () => Effect.succeed({ _tag: "RetryableFailure", problem: "connection refused" })
}

/** The stores of an account that owns nothing. */
export const ownsNothing = (write: OwnedStores["records"]["write"]): OwnedStores => ({
  records: { write, range: () => Effect.succeed([]) },
  usage: { entry: () => Effect.succeed(undefined) }
})

/** No store, nothing outside. */
export const noDependencies: Dependencies = {
  blobs: {
    put: () => Effect.fail(new StorageUnavailable({ detail: "there is no store" })),
    open: (id) => Effect.fail(new BlobMissing({ id })),
    remove: () => Effect.void,
    confirm: () => Effect.void
  },
  records: {
    write: () => Effect.void,
    get: () => Effect.succeed(undefined),
    range: () => Effect.succeed([])
  },
  usage: {
    submit: () => Effect.succeed({ _tag: "Counted" }),
    entry: () => Effect.succeed(undefined)
  },
  outbound: noOutbound,
  keyring: testKeyring,
  links: linksUnder("http://post.test"),
  documents: notificationDocuments,
  vapid: testVapid,
  schedule: [0, 1_000],
  auditRetentionMs: 365 * 86_400_000,
  retentionMs: 60_000,
  anonymousRetentionMs: 30 * 86_400_000,
  sessionRetentionMs: 30 * 86_400_000,
  random: () => 0.5
}
