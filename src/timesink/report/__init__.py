"""Pages and figures: what run directories say, as one HTML file that anybody can open."""
