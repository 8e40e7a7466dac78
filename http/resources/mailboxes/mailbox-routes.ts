/** The routes of mailboxes and their notifications (protocol §1.2). */
import { type ResourceHandler, type Route, type Service,
  withFormRedisplay } from "../../pipeline/index.ts"
import { acceptPost, directDeposit, postMailbox } from "./deposit.ts"
import { deleteMailbox, getMailboxes, postMailboxes, postPassword,
  putMailbox } from "./mailbox-collection.ts"
import { deleteNotification, getMailbox, getNotification,
  postNotificationForm } from "./mailbox-reading.ts"
import { defaultRetention } from "./mailbox-settings.ts"
import { depositForm, openForm } from "./mailbox-views.ts"

export const mailboxRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
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
      GET: { handle: getMailbox(service) },
      POST: {
        handle: withFormRedisplay(
          ({ parameters }) => depositForm(parameters.get("mailbox")),
          postMailbox(service)
        ),
        direct: directDeposit(service, "/mailboxes/{mailbox}")
      },
      PUT: { handle: putMailbox(service) },
      DELETE: { handle: deleteMailbox(service) }
    }
  },
  {
    pattern: "/mailboxes/{mailbox}/password",
    methods: { POST: { handle: postPassword(service), body: "none" } }
  },
  {
    pattern: "/mailboxes/{mailbox}/notifications/{notification}",
    methods: {
      GET: { handle: getNotification(service) },
      POST: { handle: postNotificationForm(service) },
      DELETE: { handle: deleteNotification(service) }
    }
  }
]
