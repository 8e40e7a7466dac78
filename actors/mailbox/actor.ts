/** The mailbox bound to the runtime. */
import { Effect } from "effect"
import type { Behaviour, Tagged } from "../../runtime/index.ts"
import { jsonRecord, strictMessage } from "../binding.ts"
import { repeatedAmongItems } from "../limits.ts"
import { mailboxTable } from "./decide.ts"
import type { MailboxLimits } from "./decide.ts"
import { itemAtMs, itemRepeatKey } from "./item.ts"
import { Message, State } from "./protocol.ts"
import type { Reply } from "./protocol.ts"

export const mailboxKind = "mailbox"

/** The behaviour of mailboxes; an address's id is the mailbox's name. */
export const mailbox = (limits: MailboxLimits): Behaviour<State, Message, Reply, Tagged> => ({
  kind: mailboxKind,
  initial: { _tag: "Absent" },
  table: mailboxTable(limits),
  ...jsonRecord(State),
  decodeMessage: strictMessage(Message),
  recall: {
    items: repeatedAmongItems,
    keyOf: itemRepeatKey,
    restore: (state, items) => {
      const last = items.at(-1)
      if (state._tag !== "Open" || last === undefined) return state
      return { ...state, lastAtMs: Math.max(state.lastAtMs, itemAtMs(last.value)) }
    }
  },
  wakeUp: { _tag: "WakeUp" },
  perform: () => Effect.void
})
