/** The account: its state record, its messages and its replies (protocol §4). */
import { Schema } from "effect"
import type { RecordChange } from "../../runtime/index.ts"
import { AdmitFailureReport, type AdmitFailureReportReply,
  FailureReports } from "../failure-reports/index.ts"
import { accountTokensMax } from "../limits.ts"
import { Caller, Count, ifVersion, SecretHash } from "../schemas.ts"

export const Role = Schema.Literals(["admin", "quotes", "customers"])

export type Role = typeof Role.Type

const roles = Schema.Array(Role)

/** What a token may be used for (protocol §7). */
export const TokenScope = Schema.Literals(["admin", "send", "read", "deposit"])

export type TokenScope = typeof TokenScope.Type

/** The part of its account's rights that a token has; without any property it has all. */
const tokenRights = {
  scopes: Schema.optionalKey(Schema.Array(TokenScope)),
  /** The name of the one mailbox that the token may use. */
  mailbox: Schema.optionalKey(Schema.String)
}

const TokenRights = Schema.Struct(tokenRights)

export type TokenRights = typeof TokenRights.Type

const tokenExpiry = {
  /** From this time on the token is invalid, 0 if it is revoked; without it, it does not expire. */
  expiresAtMs: Schema.optionalKey(Count)
}

const tokenProperties = {
  /** The name that the owner chose. */
  label: Schema.optionalKey(Schema.String),
  ...tokenExpiry,
  ...tokenRights
}

/** A stored token: the SHA-256 of the token, and an id that is not secret. */
const Token = Schema.Struct({
  id: Schema.String,
  hash: SecretHash,
  createdAtMs: Count,
  /** The last use that was recorded; the last one may be `tokenUseIntervalMs` later. */
  usedAtMs: Schema.optionalKey(Count),
  ...tokenProperties
})

export type Token = typeof Token.Type

const browserSessionProperties = {
  id: Schema.String,
  createdAtMs: Count,
  /** The last request, stored once in {@link browserSessionTouchMs}. */
  usedAtMs: Count,
  /** The client's address at the sign-in. */
  from: Schema.String,
  /** The name of the browser, shortened. */
  agent: Schema.String
}

/**
 * A browser that is signed in: the SHA-256 of its secret, and of the token that it was made with.
 * The token's id is not enough: another token of the operator has the same one.
 */
const BrowserSession = Schema.Struct({
  ...browserSessionProperties,
  hash: SecretHash,
  tokenHash: SecretHash
})

export type BrowserSession = typeof BrowserSession.Type

/** The kinds of what an account owns, in the order in which a removal deletes them. */
export const OwnedKind = Schema.Literals([
  "outgoing",
  "mailboxes",
  "cabinets",
  "sessions",
  "queries",
  "content",
  "tokens"
])

export type OwnedKind = typeof OwnedKind.Type

/** How far the deletion of what a removed account owned has come. It makes several passes. */
const OwnedRemoval = Schema.Struct({
  account: Schema.String,
  startedAtMs: Count,
  /** When the current pass begins: it goes through all kinds once. */
  passAtMs: Count,
  kind: OwnedKind,
  /** The last key of the kind's listing that the pass has dealt with. */
  after: Schema.optionalKey(Schema.String),
  /** Entries that the current pass has found, and resources that all passes have deleted. */
  found: Count,
  deleted: Count,
  /** When the last pass found nothing; left out before. */
  endedAtMs: Schema.optionalKey(Count)
})

export type OwnedRemoval = typeof OwnedRemoval.Type

/** Changes of the account that the audit log has, on one day: the days since 1970-01-01 (UTC). */
const CountedChanges = Schema.Struct({
  day: Count,
  count: Count,
  /** Revocations of tokens, which do not count with the others. */
  revocations: Schema.optionalKey(Count)
})

export type CountedChanges = typeof CountedChanges.Type

export const AccountState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Active", {
    name: Schema.String,
    /** The id of the request that created the account, to recognize a repetition. */
    requestId: Schema.String,
    createdAtMs: Count,
    roles,
    /**
     * The tokens, oldest first; `accountTokensMax` valid ones at most. Expired and revoked tokens
     * stay until their records are removed.
     */
    tokens: Schema.Array(Token),
    /** Whether this is the first account of the service, which always remains, and as an admin. */
    founder: Schema.Boolean,
    version: Count,
    /** The browsers that are signed in, oldest first; `browserSessionsMax` at most. */
    browserSessions: Schema.optionalKey(Schema.Array(BrowserSession)),
    /** Left out for an account that has changed nothing yet, and for admins. */
    changes: Schema.optionalKey(CountedChanges),
    /** Left out for an account that has never had a mailbox for failure reports, nor refused it. */
    failureReports: Schema.optionalKey(FailureReports)
  }),
  Schema.TaggedStruct("Removed", {
    /** Left out while nobody has asked for the deletion. */
    owned: Schema.optionalKey(OwnedRemoval)
  })
])

export type AccountState = typeof AccountState.Type

const token = { tokenId: Schema.String, tokenHash: SecretHash }

const browserSession = { sessionId: Schema.String, sessionHash: SecretHash }

export const AccountMessage = Schema.Union([
  /**
   * Creates the first admin if there is none. If `enforced`, the operator has chosen the token: it
   * then replaces the token of the same id in an existing account.
   */
  Schema.TaggedStruct("Bootstrap", { name: Schema.String, ...token, enforced: Schema.Boolean }),
  /**
   * Creates the account, whose first token has these rights and this expiry; the caller must be an
   * admin.
   */
  Schema.TaggedStruct("Create", {
    caller: Caller,
    requestId: Schema.String,
    name: Schema.String,
    roles,
    ...token,
    ...tokenExpiry,
    ...tokenRights,
    /** The mailbox for its failure reports, which the caller then opens; null for none. */
    reportsMailbox: Schema.optionalKey(Schema.NullOr(Schema.String))
  }),
  /** Returns the view; the caller must be an admin or the account itself. */
  Schema.TaggedStruct("Describe", { caller: Caller }),
  /** Returns the account's roles and the token if it is one of the account's. */
  Schema.TaggedStruct("Authenticate", { tokenHash: SecretHash }),
  /** Records that the token was used now, unless a use was recorded recently. */
  Schema.TaggedStruct("RecordUse", { tokenHash: SecretHash }),
  /**
   * Admits a federated account: the external issuer has confirmed its name. Creates the account if
   * there is none. Refused for the founder and for a removed account.
   */
  Schema.TaggedStruct("Admit", { name: Schema.String }),
  /** Adds a token; the caller must be an admin or the account itself. */
  Schema.TaggedStruct("AddToken", { caller: Caller, ...token, ...tokenProperties, ...ifVersion }),
  /** Removes a token; the caller must be an admin or the account itself. */
  Schema.TaggedStruct("RemoveToken", { caller: Caller, tokenId: Schema.String, ...ifVersion }),
  /** Removes every token; the caller must be an admin or the account itself. */
  Schema.TaggedStruct("RemoveTokens", { caller: Caller, ...ifVersion }),
  /**
   * Chooses the mailbox that receives the failure reports of the account, or none; the caller must
   * be an admin or the account itself, and has checked that the mailbox is the account's.
   */
  Schema.TaggedStruct("ChooseReportsMailbox", {
    caller: Caller,
    mailbox: Schema.optionalKey(Schema.String),
    ...ifVersion
  }),
  AdmitFailureReport,
  /**
   * Counts a change that the audit log is to record, before it happens. The reply says when the
   * next one is allowed if the account has made the most of a day.
   */
  Schema.TaggedStruct("CountChange", {
    kind: Schema.optionalKey(Schema.Literals(["revocation", "sign-out"]))
  }),
  /** Signs a browser in, if the token is one of the account's. Removes the oldest of too many. */
  Schema.TaggedStruct("AddBrowserSession", {
    ...browserSession,
    tokenHash: SecretHash,
    from: Schema.String,
    agent: Schema.String
  }),
  /** Returns the account's roles if the browser is signed in. */
  Schema.TaggedStruct("AuthenticateBrowser", browserSession),
  /** The browser has sent a request: its session lasts longer. */
  Schema.TaggedStruct("TouchBrowserSession", { sessionId: Schema.String }),
  /** Ends a session of a browser; the caller must be an admin or the account itself. */
  Schema.TaggedStruct("RemoveBrowserSession", { caller: Caller, sessionId: Schema.String }),
  /** Ends every session of a browser; the caller must be an admin or the account itself. */
  Schema.TaggedStruct("RemoveBrowserSessions", { caller: Caller }),
  /**
   * The result of RemoveTokenRecords: the account can now remove these tokens from its state.
   * `keptHashes`: the tokens whose records it has written.
   */
  Schema.TaggedStruct("TokenRecordsRemoved", {
    tokenIds: Schema.Array(Schema.String),
    keptHashes: Schema.optionalKey(Schema.Array(SecretHash))
  }),
  /**
   * Removes the account; the caller must be an admin. Only with `name` it then deletes what the
   * account owns, also if the account was removed without it before.
   */
  Schema.TaggedStruct("Remove", {
    caller: Caller,
    name: Schema.optionalKey(Schema.String),
    ...ifVersion
  }),
  /** The result of RemoveOwned. Without `next` the kind's listing has no more entries. */
  Schema.TaggedStruct("OwnedRemoved", {
    kind: OwnedKind,
    after: Schema.optionalKey(Schema.String),
    next: Schema.optionalKey(Schema.String),
    found: Count,
    deleted: Count
  }),
  Schema.TaggedStruct("TimerFired", {})
])

export type AccountMessage = typeof AccountMessage.Type

export type AccountAction =
  /** Removes the records of expired and revoked tokens. */
  | {
    readonly _tag: "RemoveTokenRecords"
    readonly account: string
    readonly tokens: ReadonlyArray<Pick<Token, "id" | "hash">>
    /** Valid tokens with the ids of removed ones: it writes the records of these. */
    readonly kept: ReadonlyArray<Pick<Token, "id" | "hash">>
  }
  /** Deletes one page of what a removed account owns. */
  | {
    readonly _tag: "RemoveOwned"
    readonly account: string
    readonly kind: OwnedKind
    readonly after?: string
    /** No request of the account is under way any more: an entry without a resource is removed. */
    readonly isSettled: boolean
  }

/** A token for its owner: without its hash. */
export type TokenView = Omit<Token, "hash">

/** Why an account gets no more tokens. */
export const tooManyTokens = `an account has at most ${accountTokensMax} tokens: remove one first`

/** The view of a browser that is signed in. */
export interface BrowserSessionView extends Omit<BrowserSession, "hash" | "tokenHash"> {
  /** The token that it was made with. */
  readonly tokenId: string
  readonly expiresAtMs: number
}

/** The view of an account, without expired tokens and ended sessions. */
export interface AccountView {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
  readonly createdAtMs: number
  readonly tokens: ReadonlyArray<TokenView>
  readonly browserSessions: ReadonlyArray<BrowserSessionView>
  readonly version: number
  /** The name of the mailbox that receives its failure reports. */
  readonly failureReports: string | undefined
  /** Nobody has chosen one, or none: the first report opens one. An older node leaves it out. */
  readonly reportsUndecided?: boolean
}

export type AccountReply =
  | AdmitFailureReportReply
  /** `tokenKept`: the token of the message is now one of the account's tokens. */
  | { readonly _tag: "Bootstrapped"; readonly created: boolean; readonly tokenKept: boolean }
  | { readonly _tag: "Created"; readonly view: AccountView; readonly repeated: boolean }
  | { readonly _tag: "Described"; readonly view: AccountView }
  | {
    readonly _tag: "Authenticated"
    readonly account: string
    readonly roles: ReadonlyArray<Role>
    readonly token: TokenView
    /** Whether the use should be recorded: RecordUse, or TouchBrowserSession for a browser. */
    readonly isUseDue: boolean
  }
  | { readonly _tag: "Admitted" }
  | { readonly _tag: "ChangeCounted" }
  /** The change must not happen: the account has made `count` on this day. */
  | { readonly _tag: "ChangesSpent"; readonly count: number; readonly untilMs: number }
  /** The ids of the removed tokens. The caller removes the records of these tokens. */
  | { readonly _tag: "Revoked"; readonly tokenIds: ReadonlyArray<string> }
  | { readonly _tag: "Done" }

/* The records of tokens. A crash may leave the record of a token that the account rejects. */

/** The key is the hash of a token; the value is the name of its account. */
export const tokensTable = "tokens"

/** The key is `<account>.<token id>`; the value is the hash of the token. */
export const tokenIdsTable = "token-ids"

/** The key of a token in {@link tokenIdsTable}. */
export const tokenKey = (account: string, tokenId: string): string => `${account}.${tokenId}`

/** Writes both records of a token. */
export const tokenAddition = (
  account: string,
  tokenId: string,
  hash: string
): ReadonlyArray<RecordChange> => [
  { table: tokensTable, key: hash, value: account },
  { table: tokenIdsTable, key: tokenKey(account, tokenId), value: hash }
]

/** Removes both records of a token. */
export const tokenRemoval = (
  account: string,
  tokenId: string,
  hash: string
): ReadonlyArray<RecordChange> => [
  { table: tokensTable, key: hash, value: null, markerExpires: true },
  { table: tokenIdsTable, key: tokenKey(account, tokenId), value: null, markerExpires: true }
]
