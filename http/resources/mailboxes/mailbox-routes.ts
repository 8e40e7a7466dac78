/** The rows of mailboxes (protocol §1.2). */
import { type ResourceHandler, type Route, scriptHandler, type Service,
  withFormRedisplay } from "../../pipeline/index.ts"
import { acceptPost, directDeposit, postMailbox } from "./deposit.ts"
import { withMailbox } from "./mailbox-access.ts"
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
        handle: withFormRedisplay(
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
      GET: { handle: withMailbox(service, getMailbox(service)) },
      POST: {
        handle: withFormRedisplay(
          ({ parameters }) => depositForm(parameters.get("mailbox")),
          withMailbox(service, postMailbox(service))
        ),
        direct: directDeposit(service, "/mailboxes/{mailbox}")
      },
      PUT: { handle: withMailbox(service, putMailbox(service)) },
      DELETE: { handle: withMailbox(service, deleteMailbox(service)) }
    }
  },
  {
    pattern: "/mailboxes/{mailbox}/password",
    methods: { POST: { handle: withMailbox(service, postPassword(service)), body: "none" } }
  },
  {
    pattern: "/mailboxes/{mailbox}/notifications/{notification}",
    methods: {
      GET: { handle: withMailbox(service, getNotification(service)) },
      POST: { handle: withMailbox(service, formOfNotification(service)) },
      DELETE: { handle: withMailbox(service, deleteNotification(service)) }
    }
  }
]
