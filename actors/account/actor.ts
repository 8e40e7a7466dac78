/** The account bound to the runtime, to the records that lead to tokens, and to what it owns. */
import { Effect } from "effect"
import type { Behavior, Peers, RecordChange, RecordsApi } from "../../runtime/index.ts"
import { accountKind, codecsOf } from "../schemas.ts"
import { accountTable } from "./decide.ts"
import { type OwnedStores, removeOwnedPage } from "./owned-resources.ts"
import { type AccountAction, AccountMessage, type AccountReply, AccountState, tokenAddition,
  tokenRemoval } from "./protocol.ts"

type RemoveTokenRecords = Extract<AccountAction, { readonly _tag: "RemoveTokenRecords" }>

/** The changes of the records; a kept token may have the keys of a removed one. */
const changesOf = (
  { account, kept, tokens }: RemoveTokenRecords
): ReadonlyArray<RecordChange> => {
  const changes = new Map<string, RecordChange>()
  const all = [
    ...tokens.flatMap(({ hash, id }) => tokenRemoval(account, id, hash)),
    ...kept.flatMap(({ hash, id }) => tokenAddition(account, id, hash))
  ]
  for (const change of all) changes.set(`${change.table}/${change.key}`, change)
  return [...changes.values()]
}

const removeTokenRecords = (records: Pick<RecordsApi, "write">, action: RemoveTokenRecords) =>
  records.write(changesOf(action)).pipe(
    Effect.map((): AccountMessage => ({
      _tag: "TokenRecordsRemoved",
      tokenIds: action.tokens.map(({ id }) => id),
      keptHashes: action.kept.map(({ hash }) => hash)
    })),
    // The timer that is set for later finds it undone.
    Effect.catch((failure) => Effect.logWarning("expired tokens were not removed", failure))
  )

const performOn = (stores: OwnedStores, action: AccountAction, peers: Peers) =>
  action._tag === "RemoveTokenRecords"
    ? removeTokenRecords(stores.records, action)
    // The deferred timer repeats a page that failed.
    : Effect.catch(
      removeOwnedPage(stores, peers, action),
      (failure) => Effect.logWarning("what a removed account owned was not deleted", failure)
    )

/** The behavior of accounts; an address's id is the account's name. */
export const account = (
  stores: OwnedStores
): Behavior<AccountState, AccountMessage, AccountReply, AccountAction> => ({
  kind: accountKind,
  initial: { _tag: "Absent" },
  table: accountTable,
  ...codecsOf(AccountState, AccountMessage),
  perform: (action, _self, peers) => performOn(stores, action, peers)
})
