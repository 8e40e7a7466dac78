/** The tour of the home page: steps with forms; some need the name of a mailbox. */
import { type FormRank, type Html, html, type HtmlForm, link, nothing, renderForm,
  signInHref } from "../../formats/html/index.ts"
import { slugCharsMax } from "../../limits.ts"
import { absoluteUri, type Service } from "../../pipeline/index.ts"
import { createForm } from "../cabinets/index.ts"
import { findForm as findCustomers } from "../customers/index.ts"
import { defaultRetention, depositForm, openForm } from "../mailboxes/index.ts"
import { composeForm } from "../outgoing/index.ts"
import { findForm as findQuote } from "../quotes/index.ts"
import { registerForm } from "../registrations/index.ts"

const slugPattern = "[a-z0-9][a-z0-9\\-]*"

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

/**
 * The controls of a form that the tour shows; the title of the step replaces the legend, unless the
 * form is folded.
 */
const stepForm = (
  { action, controls, id = "step", submit }: HtmlForm,
  names: ReadonlyArray<string>,
  rank: FormRank = "secondary",
  legend = ""
): Html =>
  renderForm(
    { action, id, submit, legend, controls: controls.filter(({ name }) => names.includes(name)) },
    rank
  )

/** Whose browser shows the page, and the first mailboxes of that account. */
export interface Visitor {
  readonly account: string
  readonly mailboxes: ReadonlyArray<string>
}

/** The first step for a browser that is signed in by this account, or for any other. */
const signInStep = (account: string | undefined): Step => ({
  id: "sign-in",
  title: account === undefined ? "Sign in" : "You are signed in",
  about: account === undefined
    ? html`You need the name and a token of an account. The operator of the service has them; the
first account is <code>admin</code>. ${
      link(signInHref("/"), "Sign in")
    } now, or when a step asks for it. Steps 3, 8 and 9 need no account.`
    : html`Your account is <code>${account}</code>. Look at ${
      link("/mailboxes", "your mailboxes")
    }, or go on.`
})

/** The mailboxes of the signed-in account, which the next steps can use. */
const ownMailboxes = (names: ReadonlyArray<string>): Html =>
  html`<p>${
    names.map((name, at) =>
      html`${at === 0 ? "" : ", "}<a href="/?mailbox=${name}#note"><b>${name}</b></a>`
    )
  }</p>
`

/** The second step: to open a mailbox, or first to choose one of those that the visitor has. */
const mailboxStep = (
  service: Service,
  mailbox: string | undefined,
  owned: ReadonlyArray<string>
): Step => {
  const open = (rank: FormRank, legend?: string): Html =>
    stepForm(openForm(defaultRetention(service.settings)), ["name"], rank, legend)
  const use = renderForm(useForm(mailbox), "secondary")
  if (owned.length === 0) {
    return {
      id: "open",
      title: "Open a mailbox",
      about: html`It gets an address, where others leave notifications, and secrets to read it
with.`,
      form: html`${mailbox === undefined ? open("primary") : nothing}${use}`
    }
  }
  return {
    id: "open",
    title: "Choose a mailbox",
    about: owned.length === 1
      ? html`You have one, which the next steps can use:`
      : html`The next steps can use one of yours:`,
    form: html`${ownMailboxes(owned)}${use}${open("rare", "Open another mailbox")}`
  }
}

const firstSteps = (
  service: Service,
  mailbox: string | undefined,
  visitor: Visitor | undefined
): ReadonlyArray<Step> => [
  signInStep(visitor?.account),
  mailboxStep(service, mailbox, visitor?.mailboxes ?? [])
]

const mailboxNeeded = html`<p class="empty">This needs a mailbox: ${
  link("#open", "open or choose one in step 2")
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
      form: form(() => stepForm(depositForm(mailbox ?? ""), ["description", "content"], "primary"))
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
      form: form(() => stepForm(composeForm("/outgoing", href), ["to", "description", "content"]))
    },
    {
      id: "push",
      title: "Receive pushes",
      about: html`Register a callback, and the service pushes each change to it, signed by Standard
Webhooks; or subscribe to the feed by WebSub.`,
      form: form(() => renderForm(registerForm(`${path}/registrations`), "secondary"))
    },
    {
      id: "gather",
      title: "Read several mailboxes as one",
      about: html`${
        link("/cabinets", "A cabinet")
      } shows many mailboxes as one, and can filter them by
a text.`,
      form: form(() => stepForm(createForm(href), ["title", "mailbox"]))
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
    form: renderForm(bridgeForm, "secondary")
  },
  {
    id: "ask",
    title: "Query",
    about: html`${link("/quotes", "Quotes")} and ${
      link("/customers?agemin=21&return=name+age", "customers of 21 and older")
    } are found by an address. A query too long for one becomes ${
      link("/queries", "a resource with its own address")
    }.`,
    form: html`${renderForm(findCustomers({ least: "21", fields: "name age" }), "secondary")}${
      renderForm(findQuote(), "secondary")
    }`
  }
]

/** All steps; `mailbox` is the name in the query, if any. */
export const tour = (
  service: Service,
  mailbox: string | undefined,
  visitor: Visitor | undefined
): Html =>
  html`<ol class="steps">${
    [
      ...firstSteps(service, mailbox, visitor),
      ...mailboxSteps(service, mailbox),
      ...otherSteps
    ].map(stepItem)
  }</ol>`
