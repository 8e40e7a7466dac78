/** The account bound to the runtime, and to the records that lead to tokens. */
import { Effect } from "effect"
import type { Behavior, RecordChange, RecordsApi } from "../../runtime/index.ts"
import { codecsOf } from "../schemas.ts"
import { accountTable } from "./decide.ts"
import { type AccountAction, AccountMessage, type AccountReply, AccountState, tokenAddition,
  tokenRemoval } from "./protocol.ts"

export const accountKind = "account"

/** The changes of the records; a kept token may have the keys of a removed one. */
const changesOf = ({ account, kept, tokens }: AccountAction): ReadonlyArray<RecordChange> => {
  const changes = new Map<string, RecordChange>()
  const all = [
    ...tokens.flatMap(({ hash, id }) => tokenRemoval(account, id, hash)),
    ...kept.flatMap(({ hash, id }) => tokenAddition(account, id, hash))
  ]
  for (const change of all) changes.set(`${change.table}/${change.key}`, change)
  return [...changes.values()]
}

/** The behavior of accounts; an address's id is the account's name. */
export const account = (
  records: Pick<RecordsApi, "write">
): Behavior<AccountState, AccountMessage, AccountReply, AccountAction> => ({
  kind: accountKind,
  initial: { _tag: "Absent" },
  table: accountTable,
  ...codecsOf(AccountState, AccountMessage),
  perform: (action) =>
    records.write(changesOf(action)).pipe(
      Effect.map((): AccountMessage => ({
        _tag: "TokenRecordsRemoved",
        tokenIds: action.tokens.map(({ id }) => id),
        keptHashes: action.kept.map(({ hash }) => hash)
      })),
      // The timer that is set for later finds it undone.
      Effect.catch((failure) => Effect.logWarning("expired tokens were not removed", failure))
    )
})
