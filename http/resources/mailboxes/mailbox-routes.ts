/** The rows of mailboxes (protocol §1.2). */
import { keepingTyped, type ResourceHandler, type Route, scriptHandler,
  type Service } from "../../pipeline/index.ts"
import { acceptPost, directDeposit, postMailbox } from "./deposit.ts"
import { below } from "./mailbox-access.ts"
import { deleteMailbox, getMailboxes, postMailboxes, postPassword,
  putMailbox } from "./mailbox-collection.ts"
import { deleteNotification, formOfNotification, getMailbox,
  getNotification } from "./mailbox-reading.ts"
import { defaultRetention } from "./mailbox-settings.ts"
import { depositForm, mailboxScript, openForm } from "./mailbox-views.ts"

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
