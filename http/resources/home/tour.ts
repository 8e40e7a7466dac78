/** The tour of the home page: steps with forms; some need the name of a mailbox. */
import { type Html, html, type HtmlForm, link, nothing,
  renderForm } from "../../formats/html/index.ts"
import { slugCharsMax } from "../../limits.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { findForm as findCustomers } from "../customers/index.ts"
import { depositForm } from "../mailboxes/index.ts"
import { composeForm } from "../outgoing/index.ts"
import { findForm as findQuote } from "../quotes/index.ts"
import { registerForm } from "../registrations/index.ts"

const slugPattern = "[a-z0-9][a-z0-9\\-]*"

const openForm: HtmlForm = {
  id: "open",
  action: "/mailboxes",
  controls: [{
    name: "name",
    label: "Name of the new mailbox",
    maxlength: slugCharsMax,
    pattern: slugPattern,
    hint: "Small letters, digits and hyphens. If it is empty, the service chooses a name."
  }],
  submit: "Open a mailbox"
}

const useForm = (mailbox: string | undefined): HtmlForm => ({
  id: "use",
  action: "/",
  method: "get",
  controls: [{
    name: "mailbox",
    label: mailbox === undefined
      ? "Or the name of an existing mailbox"
      : "The mailbox for the next steps",
    required: true,
    maxlength: slugCharsMax,
    pattern: slugPattern,
    value: mailbox ?? ""
  }],
  submit: "Use this mailbox"
})

const bridgeForm: HtmlForm = {
  id: "bridge",
  action: "/sessions",
  controls: [{ name: "continue", label: "", type: "hidden", value: "true" }],
  submit: "Step onto the bridge"
}

const cabinetForm = (mailboxHref: string): HtmlForm => ({
  id: "cabinet",
  action: "/cabinets",
  controls: [
    { name: "title", label: "Name of the cabinet", value: "Everything for me", width: "half" },
    {
      name: "mailbox",
      label: "Mailboxes in it",
      type: "textarea",
      rows: 2,
      required: true,
      value: mailboxHref,
      hint: "An address a line."
    }
  ],
  submit: "Put them into a cabinet"
})

interface Step {
  readonly id: string
  readonly title: string
  readonly about: Html
  readonly form?: Html
}

const stepItem = ({ form, id, about, title }: Step): Html =>
  html`<li id="${id}"><h3>${title}</h3>
<p>${about}</p>
${form ?? nothing}</li>
`

/** The tour omits the controls that few people need. */
const isEssential = ({ name }: { readonly name: string }): boolean =>
  name !== "url" && name !== "from"

/** The form of a step: the step's title replaces its legend. */
const stepForm = ({ action, controls, id = "step", submit }: HtmlForm): Html =>
  renderForm({ action, id, submit, controls: controls.filter(isEssential) })

const firstSteps = (mailbox: string | undefined): ReadonlyArray<Step> => [
  {
    id: "sign-in",
    title: "Sign in",
    about: html`You need the name and a token of an account. The operator of the service has them;
the first account is <code>admin</code>. The browser asks for both when a step needs them: try
${link("/mailboxes", "your mailboxes")}. Steps 3, 8 and 9 need no account.`
  },
  {
    id: "open",
    title: "Open a mailbox",
    about: html`It gets an address, where others leave notifications, and secrets to read it with.`,
    form: html`${mailbox === undefined ? renderForm(openForm) : nothing}${
      renderForm(useForm(mailbox))
    }`
  }
]

const mailboxNeeded = html`<p class="empty">This needs a mailbox: ${
  link("#open", "open or name one in step 2")
}.</p>
`

/** The steps that need a mailbox; without one they have a text, and no form. */
const mailboxSteps = (service: Service, mailbox: string | undefined): ReadonlyArray<Step> => {
  const path = `/mailboxes/${mailbox ?? ""}`
  const href = absoluteUri(service, path)
  const form = (made: () => Html): Html => mailbox === undefined ? mailboxNeeded : made()
  return [
    {
      id: "note",
      title: "Leave a note in it",
      about:
        html`Anybody who knows the address may leave a notification. It says what the message is
about, and where it is; the service publishes the message that you write here.`,
      form: form(() => stepForm(depositForm(mailbox ?? "")))
    },
    {
      id: "read",
      title: "Read it",
      about:
        html`As a page that changes by itself, as XML or JSON, as an event stream, or with any feed
reader: Atom and RSS are at the same address.`,
      form: form(() => html`<p>${link(`${path}?read=`, `Read ${mailbox ?? ""}`)}</p>`)
    },
    {
      id: "send",
      title: "Send, and follow the delivery",
      about: html`The service delivers what you POST to
${
        link("/outgoing", "your outgoing mailbox")
      } to all recipients, here and elsewhere, and retries until
it arrives. The page shows the status of each recipient.`,
      form: form(() => stepForm(composeForm("/outgoing", href)))
    },
    {
      id: "push",
      title: "Receive pushes",
      about: html`Register a callback, and the service pushes each change to it, signed by Standard
Webhooks; or subscribe to the feed by WebSub.`,
      form: form(() => stepForm(registerForm(`${path}/registrations`)))
    },
    {
      id: "gather",
      title: "Read several mailboxes as one",
      about: html`${
        link("/cabinets", "A cabinet")
      } shows many mailboxes as one, and can filter them by
a text.`,
      form: form(() => renderForm(cabinetForm(href)))
    }
  ]
}

const otherSteps: ReadonlyArray<Step> = [
  {
    id: "cross",
    title: "Cross the bridge",
    about: html`A conversation whose every state has an address:
${link("/cross_bridge", "cross the Bridge of Death")}, look at
${link("/sessions", "who came to it")}, or be asked
${link("/questions/name_question", "without a session")}.`,
    form: renderForm(bridgeForm)
  },
  {
    id: "ask",
    title: "Query",
    about: html`${link("/quotes", "Quotes")} and ${
      link("/customers?agemin=21&return=name+age", "customers of 21 and older")
    } are found by an address. A query too long for one becomes ${
      link("/queries", "a resource with its own address")
    }.`,
    form: html`${renderForm(findCustomers({ least: "21", fields: "name age" }))}${
      renderForm(findQuote())
    }`
  }
]

/** All steps; `mailbox` is the name in the query, if any. */
export const tour = (service: Service, mailbox: string | undefined): Html =>
  html`<ol class="steps">${
    [...firstSteps(mailbox), ...mailboxSteps(service, mailbox), ...otherSteps].map(stepItem)
  }</ol>`
