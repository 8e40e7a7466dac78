/** The document and the page of `/settings`. */
import { type Html, html, table } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element } from "../../formats/xml/index.ts"
import { absoluteUri, type Service, type ShownSetting } from "../../pipeline/index.ts"

/** A secret has no value: its source shows whether there is one. */
const settingElement = ({ isSecret, name, source, value, variable }: ShownSetting): Element =>
  element("setting", {
    name,
    variable,
    source,
    ...value === undefined ? {} : { value },
    ...isSecret ? { secret: "true" } : {}
  })

const valueCell = ({ isSecret, source, value = "" }: ShownSetting): Html => {
  const missing = isSecret && source !== "unset" ? "not shown" : "none"
  return value === "" ? html`<span class="quiet">${missing}</span>` : html`${value}`
}

/** Two columns, which a phone has room for. Other pages lead to a setting by its variable. */
const settingRow = (setting: ShownSetting): Html => {
  const { name, source, variable } = setting
  return html`<tr id="${variable}"><th scope="row">${name}<br><code>${variable}</code></th>
<td>${valueCell(setting)} <span class="quiet">${source}</span></td></tr>
`
}

/** The settings of the node that answers. */
export const settingsView = (service: Service): ResourceView => {
  const { shownSettings, startId } = service
  // The part after the dot differs from start to start.
  const node = startId.slice(0, startId.indexOf("."))
  return {
    title: "Settings",
    tree: element(
      "settings",
      { href: absoluteUri(service, "/settings"), node },
      ...shownSettings.map(settingElement)
    ),
    body: () =>
      html`<p class="quiet">The node ${node} has these settings since its start.</p>
${table("Settings", ["Setting", "Value and source"], shownSettings.map(settingRow))}`,
    links: [
      { rel: "related", href: "/cluster", title: "The cluster" },
      { rel: "related", href: "/limits", title: "Limits" }
    ]
  }
}
