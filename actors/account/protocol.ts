/** The account: its state record, its messages and its replies (protocol §4). */
import { Schema } from "effect"
import type { RecordChange } from "../../runtime/index.ts"
import { Caller, Count, ifVersion, SecretHash } from "../schemas.ts"

export const Role = Schema.Literals(["admin", "quotes", "customers"])

export type Role = typeof Role.Type

const roles = Schema.Array(Role)

const tokenProperties = {
  /** The name that the owner chose. */
  label: Schema.optionalKey(Schema.String),
  /** From this time on the token is invalid; without it, it does not expire. */
  expiresAtMs: Schema.optionalKey(Count)
}

/** A stored token: its SHA-256, under an id that is not secret. */
const Token = Schema.Struct({
  id: Schema.String,
  hash: SecretHash,
  createdAtMs: Count,
  ...tokenProperties
})

export type Token = typeof Token.Type

export const AccountState = Schema.Union([
  Schema.TaggedStruct("Absent", {}),
  Schema.TaggedStruct("Active", {
    name: Schema.String,
    /** The id of the request that created it: a repetition is recognized. */
    requestId: Schema.String,
    createdAtMs: Count,
    roles,
    /** At most `accountTokensMax` that have not expired, oldest first. */
    tokens: Schema.Array(Token),
    /** The first account of the service: it cannot be removed, and remains an admin. */
    founder: Schema.Boolean,
    version: Count
  }),
  Schema.TaggedStruct("Removed", {})
])

export type AccountState = typeof AccountState.Type

const token = { tokenId: Schema.String, tokenHash: SecretHash }

export const AccountMessage = Schema.Union([
  /**
   * Creates the first admin if there is none. `enforced`: the operator has chosen this token, so
   * it replaces the one of the same id in an existing account.
   */
  Schema.TaggedStruct("Bootstrap", { name: Schema.String, ...token, enforced: Schema.Boolean }),
  /** By an admin. */
  Schema.TaggedStruct("Create", {
    caller: Caller,
    requestId: Schema.String,
    name: Schema.String,
    roles,
    ...token
  }),
  /** By an admin or the account itself. */
  Schema.TaggedStruct("Describe", { caller: Caller }),
  /** Whether a token is one of the account's, and which rights it gives. */
  Schema.TaggedStruct("Authenticate", { tokenHash: SecretHash }),
  /**
   * For a federated account: an issuer has confirmed the name. The account is created if there is
   * none. The founder and removed accounts cannot be admitted.
   */
  Schema.TaggedStruct("Admit", { name: Schema.String }),
  /** By an admin or the account itself. */
  Schema.TaggedStruct("AddToken", { caller: Caller, ...token, ...tokenProperties }),
  Schema.TaggedStruct("RemoveToken", { caller: Caller, tokenId: Schema.String, ...ifVersion }),
  /** Removes every token. By an admin or the account itself. */
  Schema.TaggedStruct("RemoveTokens", { caller: Caller, ...ifVersion }),
  /** The records of expired tokens are gone, so that the account can forget them too. */
  Schema.TaggedStruct("TokenRecordsRemoved", { tokenIds: Schema.Array(Schema.String) }),
  /** By an admin. */
  Schema.TaggedStruct("Remove", { caller: Caller, ...ifVersion }),
  Schema.TaggedStruct("TimerFired", {})
])

export type AccountMessage = typeof AccountMessage.Type

/** Removes the records that lead to expired tokens. */
export interface AccountAction {
  readonly _tag: "RemoveTokenRecords"
  readonly account: string
  readonly tokens: ReadonlyArray<Pick<Token, "id" | "hash">>
}

/** The view of an account, without expired tokens. */
export interface AccountView {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
  readonly createdAtMs: number
  readonly tokens: ReadonlyArray<Omit<Token, "hash">>
  readonly version: number
}

export type AccountReply =
  /** `tokenKept`: the token of the message is one of the account's now. */
  | { readonly _tag: "Bootstrapped"; readonly created: boolean; readonly tokenKept: boolean }
  | { readonly _tag: "Created"; readonly view: AccountView; readonly repeated: boolean }
  | { readonly _tag: "Described"; readonly view: AccountView }
  | {
    readonly _tag: "Authenticated"
    readonly account: string
    readonly roles: ReadonlyArray<Role>
  }
  | { readonly _tag: "Admitted" }
  /** Their ids, so that the records that lead to them can be removed. */
  | { readonly _tag: "Revoked"; readonly tokenIds: ReadonlyArray<string> }
  | { readonly _tag: "Done" }

/* The records of tokens: from a token's hash to its account, and from its id to its hash. */

/** Hash of each token: the account that may know it. */
export const tokensTable = "tokens"

/** `<account>.<token id>` of each token: its hash. */
export const tokenIdsTable = "token-ids"

/** Key of a token in {@link tokenIdsTable}. */
export const tokenKey = (account: string, tokenId: string): string => `${account}.${tokenId}`

/** Removes both records of a token. */
export const tokenRemoval = (
  account: string,
  tokenId: string,
  hash: string
): ReadonlyArray<RecordChange> => [
  { table: tokensTable, key: hash, value: null, markerExpires: true },
  { table: tokenIdsTable, key: tokenKey(account, tokenId), value: null, markerExpires: true }
]
