/** The cabinet: its state record, its messages and its replies (protocol §1.5). */
import { Schema } from "effect"
import type { ListingTables } from "../listing-entry.ts"
import { Caller, Count, ifVersion, SecretHash } from "../schemas.ts"

/** The cabinets of each account. */
export const cabinetListing: ListingTables = {
  table: "cabinets-by-owner",
  keysTable: "cabinet-keys"
}

/** A mailbox on the list, and the hash of the secret in its URI, which lets the cabinet read it. */
const Mailbox = Schema.Struct({
  name: Schema.String.check(Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,63}$/)),
  secretHash: Schema.optionalKey(SecretHash)
})

export type CabinetMailbox = typeof Mailbox.Type

const Query = Schema.Struct({
  /** The cabinet shows only notifications that contain this text, in any letter case. */
  contains: Schema.optionalKey(Schema.String),
  /** The cabinet shows only notifications received since; RFC 3339, as the owner wrote it. */
  since: Schema.optionalKey(Schema.String)
})

export type CabinetQuery = typeof Query.Type

/** The part of a cabinet that its owner writes. */
export const CabinetContent = Schema.Struct({
  title: Schema.optionalKey(Schema.String),
  mailboxes: Schema.Array(Mailbox),
  query: Schema.optionalKey(Query)
})

export type CabinetContent = typeof CabinetContent.Type

export const CabinetState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Active", {
    /** The account that created the cabinet. */
    owner: Schema.String,
    /** The id of the request that created the cabinet, to recognize a repetition. */
    requestId: Schema.String,
    createdAtMs: Count,
    ...CabinetContent.fields,
    /** The id of the last request that replaced the contents, to recognize a repetition. */
    replacedBy: Schema.optionalKey(Schema.String),
    /** 1 at first, one more after each change. */
    version: Count
  }),
  Schema.TaggedStruct("Removed", {})
])

export type CabinetState = typeof CabinetState.Type

export const CabinetMessage = Schema.Union([
  /** Creates the cabinet. A repetition with the same request id gets the same reply. */
  Schema.TaggedStruct("Create", {
    requestId: Schema.String,
    owner: Schema.String,
    contents: CabinetContent
  }),
  /** Returns the view; the caller must be the owner. */
  Schema.TaggedStruct("Describe", { caller: Caller }),
  /**
   * Replaces the contents. If a listed mailbox is sent without a secret, the cabinet keeps the
   * secret that it has, since no view shows secrets. A repetition of the last replacement, with
   * its `ifVersion`, changes nothing and gets the same reply.
   */
  Schema.TaggedStruct("Replace", {
    requestId: Schema.optionalKey(Schema.String),
    caller: Caller,
    contents: CabinetContent,
    ...ifVersion
  }),
  /** Removes the cabinet, but no mailbox; the caller must be the owner or an admin. */
  Schema.TaggedStruct("Remove", { caller: Caller, ...ifVersion }),
  Schema.TaggedStruct("TimerFired", {})
])

export type CabinetMessage = typeof CabinetMessage.Type

/** A cabinet as its owner sees it. */
export interface CabinetView extends CabinetContent {
  readonly owner: string
  readonly createdAtMs: number
  readonly version: number
}

export type CabinetReply =
  | { readonly _tag: "Created"; readonly view: CabinetView }
  | { readonly _tag: "Described"; readonly view: CabinetView }
  | { readonly _tag: "Replaced"; readonly view: CabinetView }
  | { readonly _tag: "Done" }
