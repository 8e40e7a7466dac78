/** The rows of mailboxes (protocol §1.2). */
import { Effect } from "effect"
import type { Handler } from "../call.ts"
import { evaluate } from "../preconditions.ts"
import { entityTag } from "../representations.ts"
import { fixed } from "../respond.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"
import { getMailboxes, postMailboxes } from "./collection.ts"
import { directDeposit, postMailbox } from "./deposit.ts"
import { deleteMailbox, postPassword, putMailbox } from "./owner.ts"
import { deleteNotification, getMailbox, getNotification } from "./read.ts"
import { below } from "./reader.ts"
import { mailboxScript } from "./script.ts"

const scriptTag = entityTag(Buffer.from(mailboxScript))

const script: Handler = {
  handle: ({ request }) =>
    Effect.succeed(
      evaluate(request.method, request.headers, { exists: true, etag: scriptTag }) ===
          "not-modified"
        ? { _tag: "Plain", status: 304, headers: [["ETag", scriptTag]] }
        : fixed("text/javascript", mailboxScript, [
          ["ETag", scriptTag],
          ["Cache-Control", "no-cache"]
        ])
    )
}

export const mailboxRoutes = (service: Service): ReadonlyArray<Route<Handler>> => [
  { pattern: "/mailbox.js", methods: { GET: script } },
  {
    pattern: "/mailboxes",
    methods: {
      GET: { handle: getMailboxes(service) },
      POST: { handle: postMailboxes(service) }
    }
  },
  {
    pattern: "/mailboxes/{mailbox}",
    methods: {
      GET: { handle: below(service, getMailbox(service)) },
      POST: {
        handle: below(service, postMailbox(service)),
        direct: directDeposit(service, "/mailboxes/{mailbox}")
      },
      PUT: { handle: below(service, putMailbox(service)) },
      DELETE: { handle: below(service, deleteMailbox(service)) }
    }
  },
  {
    pattern: "/mailboxes/{mailbox}/password",
    methods: { POST: { handle: below(service, postPassword(service)), body: "none" } }
  },
  {
    pattern: "/mailboxes/{mailbox}/notifications/{notification}",
    methods: {
      GET: { handle: below(service, getNotification(service)) },
      DELETE: { handle: below(service, deleteNotification(service)) }
    }
  }
]
