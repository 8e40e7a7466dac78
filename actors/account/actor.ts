/** The account bound to the runtime, and to the records that lead to tokens. */
import { Effect } from "effect"
import type { Behavior, RecordsApi } from "../../runtime/index.ts"
import { codecsOf } from "../schemas.ts"
import { accountTable } from "./decide.ts"
import { type AccountAction, AccountMessage, type AccountReply, AccountState,
  tokenRemoval } from "./protocol.ts"

export const accountKind = "account"

/** The behavior of accounts; an address's id is the account's name. */
export const account = (
  records: Pick<RecordsApi, "write">
): Behavior<AccountState, AccountMessage, AccountReply, AccountAction> => ({
  kind: accountKind,
  initial: { _tag: "Absent" },
  table: accountTable,
  ...codecsOf(AccountState, AccountMessage),
  perform: ({ account, tokens }) =>
    records.write(tokens.flatMap(({ hash, id }) => tokenRemoval(account, id, hash))).pipe(
      Effect.map((): AccountMessage => ({
        _tag: "TokenRecordsRemoved",
        tokenIds: tokens.map(({ id }) => id)
      })),
      // The timer that is set for later finds it undone.
      Effect.catch((failure) => Effect.logWarning("expired tokens were not removed", failure))
    )
})
