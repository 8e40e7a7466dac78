/** The owner's settings and the forms that change them, on the pages of mailboxes. */
import type { MailboxView, OwnerSettings } from "../../../actors/mailbox/index.ts"
import { type Control, copyField, type Html, html, type HtmlForm, link, methodControl, nothing,
  renderForm, versionControl } from "../../formats/html/index.ts"
import { slugCharsMax, titleCharsMax, webhookSecretCharsMax,
  webhookTemplateCharsMax } from "../../limits.ts"
import type { MailboxRef } from "./mailbox-access.ts"
import { senderNames } from "./webhook-template.ts"

/** What a form shows of settings; the first option of a list stands for an absent one. */
type ShownSettings = Partial<OwnerSettings>

/** The controls of the settings that also the form has that opens a mailbox. */
const commonControls = (
  { deposit = "anyone", retention = "", title = "" }: ShownSettings
): ReadonlyArray<Control> => [
  { name: "title", label: "Title", value: title, maxlength: titleCharsMax, width: "half" },
  {
    name: "deposit",
    label: "Who may deposit",
    type: "select",
    value: deposit,
    width: "half",
    options: [["anyone", "anybody"], ["accounts", "anybody with an account"]]
  },
  {
    name: "retention",
    label: "Kept after retrieval for",
    value: retention,
    width: "half",
    hint: "A duration of ISO 8601: P30D is thirty days, PT1H an hour."
  }
]

/** The senders of webhooks that the service has templates of, for people. */
const senderOptions: ReadonlyArray<readonly [string, string]> = senderNames.map((name) => [
  name,
  name.replace(/^./, (first) => first.toUpperCase()).replace("hub", "Hub")
])

/** The form that opens a mailbox (A9). */
export const openForm = (retention: string): HtmlForm => ({
  id: "open",
  action: "/mailboxes",
  legend: "Open a mailbox",
  controls: [
    {
      name: "name",
      label: "Name",
      maxlength: slugCharsMax,
      pattern: "[a-z0-9][a-z0-9\\-]*",
      width: "half",
      hint: "Small letters, digits and hyphens. If it is empty, the service chooses a name."
    },
    ...commonControls({ retention }),
    {
      name: "webhook",
      label: "Webhooks",
      type: "select",
      options: [["", "none"], ...senderOptions],
      hint: "A service whose webhooks become notifications. For another one, write your own "
        + "templates in the settings of the mailbox."
    }
  ],
  submit: "Open"
})

const settingsPath = (name: string): string => `/mailboxes/${name}/settings`

/** The form that replaces PUT: all settings but those of webhooks, which have their own form. */
export const settingsForm = (
  name: string,
  settings: ShownSettings = {},
  version?: number
): HtmlForm => {
  const { fetch = "never", fetchLimitBytes, receipts = "none" } = settings
  return {
    id: "settings",
    action: settingsPath(name),
    legend: "Change the settings",
    controls: [
      methodControl("put"),
      versionControl(version),
      ...commonControls(settings),
      {
        name: "fetch",
        label: "Fetches the messages",
        type: "select",
        value: fetch,
        width: "half",
        options: [["never", "never: readers fetch them"], [
          "eager",
          "as soon as they are announced"
        ]]
      },
      {
        name: "fetch-limit",
        label: "At most so many bytes of a message",
        value: fetchLimitBytes === undefined ? "" : String(fetchLimitBytes),
        inputmode: "numeric",
        width: "half",
        hint: "If it is empty, the limit of the service."
      },
      {
        name: "receipts",
        label: "Receipts",
        type: "select",
        value: receipts,
        width: "half",
        options: [
          ["none", "none"],
          ["received", "to the sender, when a notification has arrived"],
          ["retrieved", "to the sender, when a reader has retrieved it"]
        ]
      }
    ],
    submit: "Save"
  }
}

/** The form that replaces DELETE: the user writes the name, since nothing brings a mailbox back. */
export const removalForm = (name: string): HtmlForm => ({
  id: "removal",
  action: settingsPath(name),
  legend: "Remove this mailbox, with all that is in it",
  controls: [
    methodControl("delete"),
    {
      name: "name",
      label: "Name of the mailbox",
      required: true,
      maxlength: slugCharsMax,
      hint: `Write ${name}. Afterwards nobody can open a mailbox of this name.`
    }
  ],
  submit: "Remove the mailbox",
  tone: "danger"
})

const secretControls: ReadonlyArray<Control> = [
  {
    name: "secret",
    label: "New secret for signatures",
    type: "password",
    maxlength: webhookSecretCharsMax,
    hint: "The one that the sender signs with. If it is empty, nothing changes."
  },
  { name: "unsigned", label: "Remove the secret: webhooks need no signature", type: "checkbox" }
]

/** The form of the settings of webhooks, with those of a mailbox. */
export const webhookForm = (name: string, view?: MailboxView): HtmlForm => {
  const templates = view?.settings.webhook
  const { description = "", priority = "", tags = "" } = templates ?? {}
  const isKnown = senderNames.includes(description)
  const template = { maxlength: webhookTemplateCharsMax }
  return {
    id: "webhooks",
    action: `/mailboxes/${name}/webhooks`,
    legend: "Webhooks",
    help: html`${
      link(
        "/docs/how-to/recipes#grafana-alertmanager-github-stripe-and-any-other-webhook",
        "How to connect Grafana, GitHub, Stripe and others"
      )
    }, with examples.`,
    controls: [
      versionControl(view?.version),
      {
        name: "sender",
        label: "Sender",
        type: "select",
        options: [["", "another service: the templates below"], ...senderOptions],
        value: isKnown ? description : "",
        hint: "The service has templates of these senders; link, priority and tags below replace "
          + "theirs."
      },
      {
        ...template,
        name: "webhook",
        label: "Description",
        value: isKnown ? "" : description,
        hint: "A line of text in which {/title} stands for a value of the JSON, and "
          + "{/one|/other} for the first that there is. If all four are empty, the mailbox takes "
          + "no webhooks."
      },
      { ...template, name: "webhook-link", label: "Link", value: templates?.link ?? "" },
      {
        ...template,
        name: "webhook-priority",
        label: "Priority",
        value: priority,
        width: "half",
        hint: "1 to 5, or a severity."
      },
      {
        ...template,
        name: "webhook-tags",
        label: "Tags",
        value: tags,
        width: "half",
        hint: "With commas."
      },
      ...secretControls.filter((one) =>
        view === undefined || view.webhookSecret !== undefined || one.name === "secret"
      )
    ],
    submit: "Save"
  }
}

/** The settings of a mailbox, and the forms by which its owner changes them. */
export const settingsOf = (mailbox: MailboxRef, view: MailboxView): Html => {
  const { settings } = view
  return html`<h2>Settings</h2>
<dl class="facts"><dt>Address</dt><dd>${copyField("address", mailbox.href)}</dd>
<dt>Who may deposit</dt><dd>${settings.deposit}</dd>
<dt>Kept after retrieval for</dt><dd>${settings.retention}</dd>
<dt>Fetches the messages</dt><dd>${settings.fetch}</dd>
<dt>Receipts</dt><dd>${settings.receipts}</dd>
<dt>Webhooks</dt><dd>${
    settings.webhook === undefined ? "none" : settings.webhook.description || "any"
  }${view.webhookSecret === undefined ? nothing : ", signed"}</dd></dl>
${renderForm(settingsForm(mailbox.name, settings, view.version), "rare")}${
    renderForm(webhookForm(mailbox.name, view), "rare")
  }${renderForm(removalForm(mailbox.name), "rare")}${
    renderForm({
      id: "secrets",
      action: `/mailboxes/${mailbox.name}/password`,
      legend: "Password and shared address: the old ones become invalid",
      controls: [],
      submit: "Replace both",
      tone: "danger"
    })
  }`
}
