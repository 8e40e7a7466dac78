/** The pages of push registrations; they work without a script. */
import type { RegistrationStatus,
  RegistrationView as Registered } from "../../../actors/registration/index.ts"
import { badge, type Control, copyField, emptyState, type Html, html, type HtmlForm, link, livePart,
  liveState, nothing, renderForm, timeAt } from "../../formats/html/index.ts"
import { uriCharsMax } from "../../limits.ts"
import type { MailboxRef } from "../mailboxes/index.ts"
import { collectionPath, type DescribedRegistration,
  type RegistrationRef } from "./registration-access.ts"

/** A sign and the word: no status is told by its sign alone. */
const marks: { readonly [S in RegistrationStatus]: string } = {
  active: "✓ active",
  unverified: "○ unverified",
  suspended: "✗ suspended"
}

/** What each status means to who sees it. */
const meanings: { readonly [S in RegistrationStatus]: string } = {
  active: "Changes are pushed to the callback.",
  unverified: "The callback has not answered the challenge yet; nothing is pushed to it.",
  suspended: "The callback has failed for too long; nothing is pushed until this is lifted."
}

const kinds: { readonly [S in RegistrationStatus]: "good" | "wait" | "bad" } = {
  active: "good",
  unverified: "wait",
  suspended: "bad"
}

const standing = (status: RegistrationStatus): Html => badge(kinds[status], marks[status])

const callbackControl = (value: string | undefined): Control => ({
  name: "callback",
  label: "Callback",
  type: "url",
  required: true,
  maxlength: uriCharsMax,
  ...value === undefined ? {} : { value },
  hint: "The URI that changes are pushed to. It must answer a challenge first."
})

const entry = ({ registration, view }: DescribedRegistration): Html =>
  html`<li><p>${standing(view.status)} <a href="${registration.path}">${view.callback}</a></p>
<p class="quiet">${view.form}${view.attempts === 0 ? nothing : html` · attempts ${view.attempts}`}${
    view.problem === undefined ? nothing : html` · ${view.problem}`
  }</p></li>
`

/** The form that registers (A12). */
export const registerForm = (action: string, callback?: string): HtmlForm => ({
  id: "register",
  action,
  legend: "Register a callback",
  controls: [callbackControl(callback)],
  submit: "Register"
})

/** Every registration with its status, and the form that adds one. */
export const collectionPage = (
  place: MailboxRef,
  all: ReadonlyArray<DescribedRegistration>
): Html =>
  html`<p>Whatever changes in the mailbox is pushed to each of these.</p>
${
    livePart(
      "entries",
      all.length > 0
        ? html`<ul class="entries">${all.map(entry)}</ul>`
        : emptyState("There is nothing here.", "Register the address of a program that listens.")
    )
  }${liveState}${renderForm(registerForm(collectionPath(place)))}`

const row = (label: string, value: Html | string | number | undefined): Html =>
  value === undefined ? nothing : html`<dt>${label}</dt><dd>${value}</dd>
`

const timeRow = (label: string, atMs: number | undefined): Html =>
  atMs === undefined ? nothing : row(label, timeAt(atMs))

const facts = (view: Registered): Html =>
  html`<p>${standing(view.status)} <span class="quiet">${meanings[view.status]}</span></p>
<dl class="facts">${row("Callback", view.callback)}${
    row("Form", view.form === "native" ? "native: signed by Standard Webhooks" : "WebSub")
  }${row("Account", view.account)}${timeRow("Registered", view.createdAtMs)}${
    timeRow("Lease until", view.leaseUntilMs)
  }${row("Acknowledged up to", view.cursor)}${row("Attempts", view.attempts)}${
    timeRow("Last attempt", view.lastAtMs)
  }${timeRow("Next attempt", view.nextAtMs)}${row("Status code", view.code)}${
    row("Problem", view.problem)
  }${timeRow("The older secret signs too until", view.rotatedUntilMs)}</dl>
`

const nativeForms = ({ path }: RegistrationRef, { callback }: Registered): Html =>
  html`${
    renderForm({
      id: "lift",
      action: path,
      legend: "Verify it anew, lift a suspension, or change the callback",
      controls: [
        { name: "method", label: "", type: "hidden", value: "put" },
        callbackControl(callback)
      ],
      submit: "Verify"
    })
  }${
    renderForm({
      id: "rotate",
      action: `${path}/secret`,
      legend: "A new secret; the old one signs too for a while",
      controls: [],
      submit: "Make a new secret"
    })
  }`

const websubForms = ({ path }: RegistrationRef): Html =>
  renderForm({
    id: "lift",
    action: path,
    legend: "Verify it anew, or lift a suspension",
    controls: [{ name: "method", label: "", type: "hidden", value: "put" }],
    submit: "Verify"
  })

/** How one registration stands, and all that can be done with it. */
export const registrationPage = (registration: RegistrationRef, view: Registered): Html =>
  html`${livePart("facts", facts(view))}${liveState}${
    view.form === "native" ? nativeForms(registration, view) : websubForms(registration)
  }${
    renderForm({
      id: "delete",
      action: registration.path,
      legend: "End it: nothing is pushed any more",
      controls: [{ name: "method", label: "", type: "hidden", value: "delete" }],
      submit: "End",
      tone: "danger"
    })
  }`

/** The one page that shows a secret. */
export const secretPage = (
  { path }: RegistrationRef,
  { callback, rotatedUntilMs }: Registered,
  secret: string
): Html =>
  html`<p>Keep this: it is not shown again.</p>
<dl><dt>Secret, which signs every push by Standard Webhooks</dt><dd>${
    copyField("secret", secret)
  }</dd>
<dt>Callback</dt><dd>${callback}</dd>${
    timeRow("The older secret signs too until", rotatedUntilMs)
  }</dl>
<p>${link(path, "How the registration stands")}</p>`
