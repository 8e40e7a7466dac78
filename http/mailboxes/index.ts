/** The rows of mailboxes (protocol §1.2). */
import type { Handler } from "../call.ts"
import { scriptHandler } from "../html/script.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"
import { getMailboxes, postMailboxes } from "./collection.ts"
import { acceptPost, directDeposit, postMailbox } from "./deposit.ts"
import { deleteMailbox, postPassword, putMailbox } from "./owner.ts"
import { deleteNotification, getMailbox, getNotification } from "./read.ts"
import { below } from "./reader.ts"
import { mailboxScript } from "./script.ts"

export const mailboxRoutes = (service: Service): ReadonlyArray<Route<Handler>> => [
  { pattern: "/mailbox.js", methods: { GET: scriptHandler(mailboxScript) } },
  {
    pattern: "/mailboxes",
    methods: {
      GET: { handle: getMailboxes(service) },
      POST: { handle: postMailboxes(service) }
    }
  },
  {
    pattern: "/mailboxes/{mailbox}",
    acceptPost,
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
