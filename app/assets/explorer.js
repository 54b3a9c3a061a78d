// The explorer's scripts start here: each page of the navigation, by its name in lower case.

import { comparePage } from "./compare/compare_page.js";
import { learnPage } from "./learn/learn_page.js";
import { meshPage } from "./mesh/mesh_page.js";
import { reportPages } from "./report/report_page.js";
import { closeByEscape } from "./shell/escape.js";
import { answerJobs } from "./shell/job.js";
import { startPages } from "./shell/pages.js";
import { startTheme } from "./shell/theme.js";
import { askTripEarly, tripPage } from "./trip/trip_page.js";

startTheme();
answerJobs();
closeByEscape();
startPages({
  trip: { path: "/", fill: tripPage, askEarly: askTripEarly },
  mesh: { path: "/mesh", fill: meshPage },
  compare: { path: "/compare", fill: comparePage },
  learn: { path: "/learn", fill: learnPage },
  ...reportPages(),
});
