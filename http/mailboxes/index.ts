/** The rows of mailboxes (protocol §1.2). */
import type { ResourceHandler } from "../call.ts"
import { keepingTyped } from "../again.ts"
import { scriptHandler } from "../html/script.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"
import { getMailboxes, postMailboxes } from "./collection.ts"
import { acceptPost, directDeposit, postMailbox } from "./deposit.ts"
import { deleteMailbox, postPassword, putMailbox } from "./owner.ts"
import { depositForm, openForm } from "./pages.ts"
import { deleteNotification, formOfNotification, getMailbox, getNotification } from "./read.ts"
import { below } from "./reader.ts"
import { mailboxScript } from "./script.ts"
import { defaultRetention } from "./settings.ts"

export const mailboxRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  { pattern: "/mailbox.js", methods: { GET: scriptHandler(mailboxScript) } },
  {
    pattern: "/mailboxes",
    methods: {
      GET: { handle: getMailboxes(service) },
      POST: {
        handle: keepingTyped(
          () => openForm(defaultRetention(service.settings)),
          postMailboxes(service)
        )
      }
    }
  },
  {
    pattern: "/mailboxes/{mailbox}",
    acceptPost,
    methods: {
      GET: { handle: below(service, getMailbox(service)) },
      POST: {
        handle: keepingTyped(
          ({ parameters }) => depositForm(parameters.get("mailbox")),
          below(service, postMailbox(service))
        ),
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
      POST: { handle: below(service, formOfNotification(service)) },
      DELETE: { handle: below(service, deleteNotification(service)) }
    }
  }
]
